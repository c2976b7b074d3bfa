"""Pictures of fitted estimators, in the shape of scikit-learn's displays."""

from outweigh.displays.estimates import (
    BiplotDisplay,
    ComponentsDisplay,
    LocationDisplay,
    OutlierMapDisplay,
    ScreeDisplay,
)
from outweigh.displays.fits import RowsDisplay, TraceDisplay, WeightsDisplay

__all__ = [
    "BiplotDisplay",
    "ComponentsDisplay",
    "LocationDisplay",
    "OutlierMapDisplay",
    "RowsDisplay",
    "ScreeDisplay",
    "TraceDisplay",
    "WeightsDisplay",
]
