"""Writing a file in one piece."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from outweigh.experiments.errors import ExperimentError


def write_whole(path: Path, data: bytes) -> Path:
    """Write a file so that the old one stays until the new one is complete.

    Parameters
    ----------
    path : Path
        Its folder is made if it is missing.
    data : bytes

    Returns
    -------
    Path
        The same path.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error
    return path
