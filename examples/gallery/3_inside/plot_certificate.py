"""
The certificate: what clean data would score
============================================

A fit says how good it is. The objective at the weights found is compared with what clean data of
the same size scores, which is known before anything is computed. Made-up data with 15 % of wrong
rows, so that the truth is known: with too small a contamination the fit *stalls* above that level
and says so.
"""

import matplotlib.pyplot as plt
import numpy as np

from outweigh import RobustMean

rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 60))
X[:225, :12] += 1.2

allowed = [0.0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.18, 0.21]
fits = [RobustMean(contamination=eps, scale=None, covariance=None).fit(X) for eps in allowed]
for eps, fit in list(zip(allowed, fits, strict=True))[2::3]:
    print(f"{eps:.2f}: {fit.certificate_.verdict}")

fig, ax = plt.subplots()
floor = fits[-1].certificate_.noise_floor
ax.axhspan(
    floor.median, floor.upper, color="C0", alpha=0.25, label="clean data: median to 99 in 100"
)
ax.plot(allowed, [fit.certificate_.objective for fit in fits], "o-", color="C5", label="objective")
error = [np.linalg.norm(fit.location_) for fit in fits]
ax.plot(
    allowed, error, "s--", color="C1", label="error of the mean, which nobody knows in practice"
)
ax.axvline(0.15, color="C3", lw=1)
ax.annotate("the truth", (0.15, 1.2), (5, 0), textcoords="offset points")
ax.set(xlabel="contamination allowed", title="An objective at the level of clean data")
ax.set_ylim(0, 2.6)
ax.legend(loc="upper right")
plt.show()
