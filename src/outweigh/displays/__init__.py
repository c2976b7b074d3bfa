"""Pictures of fitted estimators, in the shape of scikit-learn's displays."""

from outweigh.displays.components import (
    BiplotDisplay,
    ComponentsDisplay,
    OutlierMapDisplay,
    ScreeDisplay,
)
from outweigh.displays.location import LocationDisplay
from outweigh.displays.rows import RowsDisplay
from outweigh.displays.trace import TraceDisplay
from outweigh.displays.weights import WeightsDisplay

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
