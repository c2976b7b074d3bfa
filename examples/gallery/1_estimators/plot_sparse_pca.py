"""
Components that use few columns
===============================

Thirty measurements of the nuclei of cells, in 569 samples. A plain principal component mixes all
thirty; :class:`~outweigh.RobustSparsePCA` keeps those that matter, so that a component can be
named: here it is size. One record in eighteen has two columns exchanged, and the print says how far
that turns either component.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.preprocessing import RobustScaler, StandardScaler

from outweigh import RobustSparsePCA

cells = load_breast_cancer(as_frame=True).data
wrong, rows = cells.copy(), cells.index[::18]
PAIR = ["mean perimeter", "mean compactness"]
wrong.loc[rows, PAIR] = cells.loc[rows, PAIR[::-1]].to_numpy()


def plain_component(table):
    return PCA(1).fit(StandardScaler().fit_transform(table)).components_[0]


def sparse_component(table):
    scaled = RobustScaler().fit_transform(table)
    return RobustSparsePCA(1, n_nonzero=6).fit(scaled).components_[0]


for component in plain_component, sparse_component:
    cosine = abs(component(cells) @ component(wrong))
    print(f"{component.__name__}: turned by {np.degrees(np.arccos(min(cosine, 1.0))):.1f} degrees")

# %%
# Many of the columns are near copies of each other (radius, perimeter, area). With another
# ``n_nonzero`` other copies may be chosen, wrong rows or none: the name stays.

plain, loadings = plain_component(wrong), sparse_component(wrong)
loadings *= np.sign(loadings @ plain)
fig, ax = plt.subplots(figsize=(7.5, 4.4))
order = np.argsort(-np.abs(loadings) - 1e-3 * np.abs(plain))[:14]
height = np.arange(len(order))
ax.barh(height - 0.2, plain[order], 0.38, color="C3", label="PCA")
ax.barh(height + 0.2, loadings[order], 0.38, label="RobustSparsePCA")
ax.set_yticks(height, cells.columns[order])
ax.invert_yaxis()
ax.set(xlabel="loading on the first component", title="Six columns of thirty")
ax.legend(loc="lower right")
plt.show()
