"""Reductions over the samples: the only room that sees X."""

from outweigh.moments.dense import DenseSamples
from outweigh.moments.matrices import ArrayMoment, BlockedMoment
from outweigh.moments.screened import ScreenedMoment, TiledMoment

__all__ = ["ArrayMoment", "BlockedMoment", "DenseSamples", "ScreenedMoment", "TiledMoment"]
