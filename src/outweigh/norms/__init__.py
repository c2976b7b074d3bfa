"""Norms on moment matrices, each with its value and its maximiser."""

from outweigh.norms.entrywise import LargestEntries, RowwiseLargest
from outweigh.norms.spectral import KyFan

__all__ = ["KyFan", "LargestEntries", "RowwiseLargest"]
