"""Reductions over the samples: the only room that sees X."""

from outweigh.moments.chunked import ChunkedSamples
from outweigh.moments.chunked_rows import ChunkedRows
from outweigh.moments.dense import DenseSamples
from outweigh.moments.matrices import ArrayMoment, BlockedMoment
from outweigh.moments.rows import ArrayRows, Rows
from outweigh.moments.screened import ScreenedMoment, TiledMoment
from outweigh.moments.sparse import SparseSamples
from outweigh.moments.sparse_rows import SparseRows

__all__ = [
    "ArrayMoment",
    "ArrayRows",
    "BlockedMoment",
    "ChunkedRows",
    "ChunkedSamples",
    "DenseSamples",
    "Rows",
    "ScreenedMoment",
    "SparseRows",
    "SparseSamples",
    "TiledMoment",
]
