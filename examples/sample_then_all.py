"""Weights searched on a sample, all rows weighted by what it taught: for data of any size."""

import dask.array as da
import numpy as np

from outweigh import RobustSparseMean
from outweigh.adversaries import make

sample = make("wrong_support", 40_000, 50, 5, 0.1, random_state=2000)
everything = da.from_array(sample.X, chunks=(4000, -1))

# One pass reads 4000 rows and checks all of them, another averages those that are trusted.
est = RobustSparseMean(n_nonzero=5, subsample=4000).fit(everything)

# What the sample alone would have said.
alone = RobustSparseMean(n_nonzero=5).fit(sample.X[est.subsample_])

print(est.certificate_.verdict)
print(f"error on the sample: {np.linalg.norm(alone.location_ - sample.truth):.4f}")
print(f"error on all rows:   {np.linalg.norm(est.location_ - sample.truth):.4f}")
print(f"passes:              {est.n_passes_}")
# Not computed so far: the weights stay in chunks.
distrusted = int((est.weights_ == 0.0).sum().compute())
print(f"rows distrusted:     {distrusted} of {len(everything)}")
