"""Tables from files and frames, and back: pandas, polars and pyarrow are loaded only here.

Models are in `outweigh.files.model`, which needs the estimators.
"""

from outweigh.files.frames import explanation_frame
from outweigh.files.parts import on_scheduler, open_table
from outweigh.files.reading import read_table
from outweigh.files.table import DataError
from outweigh.files.writing import write_file

__all__ = [
    "DataError",
    "explanation_frame",
    "on_scheduler",
    "open_table",
    "read_table",
    "write_file",
]
