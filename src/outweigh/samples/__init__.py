"""Reductions over the samples: the only room that sees X."""

from outweigh.samples.chunked import ChunkedSamples
from outweigh.samples.chunked_rows import ChunkedRows
from outweigh.samples.dense import DenseSamples
from outweigh.samples.matrices import ArrayMoment
from outweigh.samples.rows import ArrayRows, Rows
from outweigh.samples.sparse import SparseSamples
from outweigh.samples.sparse_rows import SparseRows

__all__ = [
    "ArrayMoment",
    "ArrayRows",
    "ChunkedRows",
    "ChunkedSamples",
    "DenseSamples",
    "Rows",
    "SparseRows",
    "SparseSamples",
]
