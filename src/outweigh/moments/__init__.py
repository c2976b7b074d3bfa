"""Reductions over the samples: the only room that sees X."""

from outweigh.moments.dense import DenseSamples
from outweigh.moments.matrices import ArrayMoment, BlockedMoment

__all__ = ["ArrayMoment", "BlockedMoment", "DenseSamples"]
