"""Pictures of fitted estimators, in the shape of scikit-learn's displays."""

from outweigh.displays.components import (
    BiplotDisplay,
    ComponentsDisplay,
    OutlierMapDisplay,
    ScreeDisplay,
)
from outweigh.displays.location import LocationDisplay
from outweigh.displays.rows import RowsDisplay, WeightsDisplay
from outweigh.displays.trace import TraceDisplay

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
