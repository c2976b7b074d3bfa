"""Tables from files and frames, and back: pandas, polars and pyarrow are loaded only here.

Models are in `outweigh.files.model`, which needs the estimators.
"""

from outweigh.files.frames import explanation_frame, inert, named_frame, rows_frame
from outweigh.files.parts import on_scheduler, open_table, said_by_dask
from outweigh.files.reading import MAX_GIGABYTES, read_table
from outweigh.files.table import DataError, Table
from outweigh.files.writing import check_target, write_file

__all__ = [
    "MAX_GIGABYTES",
    "DataError",
    "Table",
    "check_target",
    "explanation_frame",
    "inert",
    "named_frame",
    "on_scheduler",
    "open_table",
    "read_table",
    "rows_frame",
    "said_by_dask",
    "write_file",
]
