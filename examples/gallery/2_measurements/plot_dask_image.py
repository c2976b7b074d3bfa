"""
Rows that do not fit: Dask
==========================

Every pixel of a photograph is a row of three colours, 128,000 of them in chunks of a Dask array,
which might as well lie in Zarr files or on a cluster. Weights are sought on a sample of 5,000
pixels and all pixels are scored in two passes. What the fit to the sky distrusts is the roof.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from outweigh import RobustMean

photograph = load_sample_image("china.jpg")[:200]
pixels = da.from_array(photograph.reshape(-1, 3).astype(float), chunks=(16_000, -1))

est = RobustMean(subsample=5_000).fit(pixels)
print(est.certificate_.verdict)
print("colour of the sky:", est.location_.round(), "in", est.n_passes_, "passes")
print("plain mean:       ", pixels.mean(axis=0).compute().round())

trusted = np.asarray(est.predict(pixels)).reshape(200, 640) == 1
fig, axes = plt.subplots(1, 2, figsize=(9, 1.9))
axes[0].imshow(photograph)
axes[1].imshow(np.where(trusted[..., None], photograph, (209, 73, 91)).astype(int))
for ax, title in zip(axes, ("the photograph", "distrusted pixels in red"), strict=True):
    ax.set(title=title)
    ax.axis("off")
plt.show()
