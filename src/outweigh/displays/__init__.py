"""Pictures of fitted estimators, in the shape of scikit-learn's displays."""

from outweigh.displays.components import ComponentsDisplay, OutlierMapDisplay
from outweigh.displays.location import LocationDisplay
from outweigh.displays.trace import TraceDisplay
from outweigh.displays.weights import WeightsDisplay

__all__ = [
    "ComponentsDisplay",
    "LocationDisplay",
    "OutlierMapDisplay",
    "TraceDisplay",
    "WeightsDisplay",
]
