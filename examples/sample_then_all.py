"""A fit on a sample, then all rows in one lazy pass: for data of any size."""

import dask
import dask.array as da
import numpy as np

from outweigh import RobustSparseMean
from outweigh.adversaries import make

sample = make("wrong_support", 40_000, 50, 5, 0.1, random_state=2000)
everything = da.from_array(sample.X, chunks=(4000, -1))

# Rows from everywhere: the first ones may not be like the others.
rows = np.sort(np.random.default_rng(0).choice(len(everything), 4000, replace=False))
est = RobustSparseMean(n_nonzero=5).fit(everything[rows].compute())

# None of these has read anything yet; the weights and scores of the rows stay in chunks.
better = est.reweighted_mean(everything)
distrusted = (est.predict(everything) == -1).sum()
better, distrusted = dask.compute(better, distrusted)

print(est.certificate_.verdict)
print(f"error on the sample: {np.linalg.norm(est.location_ - sample.truth):.4f}")
print(f"error on all rows:   {np.linalg.norm(better - sample.truth):.4f}")
print(f"rows flagged:        {distrusted} of {len(everything)}")
