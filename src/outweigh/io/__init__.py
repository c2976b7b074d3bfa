"""Tables from files and frames, and back: pandas, polars and pyarrow are imported only here."""

from outweigh.io.files import MAX_GIGABYTES, read_table
from outweigh.io.frames import explanation_frame, named_frame, weights_frame
from outweigh.io.lazy import on_scheduler, open_table, said_by_dask
from outweigh.io.needs import DataError
from outweigh.io.table import Table

__all__ = [
    "MAX_GIGABYTES",
    "DataError",
    "Table",
    "explanation_frame",
    "named_frame",
    "on_scheduler",
    "open_table",
    "read_table",
    "said_by_dask",
    "weights_frame",
]
