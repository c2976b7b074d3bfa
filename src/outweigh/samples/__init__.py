"""Reductions over the samples: the only room that sees X."""

from outweigh.samples.chunked import ChunkedSamples
from outweigh.samples.chunked_rows import ChunkedRows
from outweigh.samples.dense import DenseSamples
from outweigh.samples.matrices import ArrayMoment, BlockedMoment
from outweigh.samples.rows import ArrayRows, Rows
from outweigh.samples.screened import ScreenedMoment, TiledMoment
from outweigh.samples.sparse import SparseSamples
from outweigh.samples.sparse_rows import SparseRows

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
