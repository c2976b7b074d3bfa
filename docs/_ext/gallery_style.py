"""One look for every picture of the gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

TRUSTED, DISTRUSTED, PLAIN, DARK = "#00798c", "#d1495b", "#9aa5b1", "#3d3d3d"

STYLE = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": mpl.cycler(color=[TRUSTED, DISTRUSTED, "#edae49", PLAIN, "#66a182", DARK]),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "figure.figsize": (7.5, 3.8),
    "font.size": 10,
    "grid.color": "#e6e6e6",
    "image.cmap": "gray_r",
    "legend.frameon": False,
    "savefig.dpi": 130,
}


def reset(gallery_conf: dict[str, Any], name: str | Path) -> None:
    """Start an example from the same state, whatever ran before it."""
    mpl.rcdefaults()
    mpl.use("Agg")
    mpl.rcParams.update(STYLE)
