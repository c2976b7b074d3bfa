"""
Components that use few columns
===============================

Thirteen measurements of Italian wines. A plain principal component mixes all thirteen;
:class:`~outweigh.RobustSparsePCA` keeps those that matter, so that a component can be named. Ten
records have two columns exchanged; the print says how far that turns either component.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import RobustScaler, StandardScaler

from outweigh import RobustSparsePCA

wine = load_wine(as_frame=True).data
wrong = wine.copy()
rows = wine.index[::18]
wrong.loc[rows, ["proline", "magnesium"]] = wine.loc[rows, ["magnesium", "proline"]].to_numpy()


def plain_component(table):
    return PCA(1).fit(StandardScaler().fit_transform(table)).components_[0]


def sparse_component(table):
    scaled = RobustScaler().fit_transform(table)
    return RobustSparsePCA(1, n_nonzero=6).fit(scaled).components_[0]


for component in plain_component, sparse_component:
    cosine = abs(component(wine) @ component(wrong))
    print(f"{component.__name__}: turned by {np.degrees(np.arccos(min(cosine, 1.0))):.1f} degrees")

plain, loadings = plain_component(wrong), sparse_component(wrong)
loadings *= np.sign(loadings @ plain)

fig, ax = plt.subplots(figsize=(7.5, 4.4))
order = np.argsort(-np.abs(plain))
height = np.arange(len(order))
ax.barh(height - 0.2, plain[order], 0.38, color="C3", label="PCA")
ax.barh(height + 0.2, loadings[order], 0.38, label="RobustSparsePCA")
ax.set_yticks(height, wine.columns[order])
ax.invert_yaxis()
ax.set(xlabel="loading on the first component", title="Six columns of thirteen")
ax.legend()
plt.show()
