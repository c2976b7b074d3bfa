"""The one way in which the library writes a file: in one piece, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from pathlib import Path


def write_file(path: str | Path, data: str | bytes) -> Path:
    """Write a file so that the old one stays until the new one is complete and on the disk.

    The data goes to a new file in the same folder, is synchronised, and takes the name of the old
    one. Whatever fails, the old file is untouched and nothing is left beside it.

    Parameters
    ----------
    path : str or Path
        Its folder is made if it is missing. A symbolic link stays: what it points to is replaced.
        A file that exists keeps its permissions; a new one has those of the umask.
    data : str or bytes
        Text is encoded in UTF-8.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    OSError
        If it cannot be written, or is there and not a regular file: a folder, a device, a pipe.
    """
    try:
        target, _ = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f".outweigh-{secrets.token_hex(8)}"
        try:
            with open(temporary, "xb") as file:
                if target.exists():
                    # Before there is anything to read in it: the old file may be private.
                    os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
                file.write(data.encode() if isinstance(data, str) else data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _refusal(error, path) from error
    return Path(path)


def check_target(path: str | Path) -> None:
    """Refuse, before any work, a file that could not be written after it.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    OSError
        As `write_file` would.
    """
    try:
        _, folder = _target(path)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _refusal(error, path) from error


def _target(path: str | Path) -> tuple[Path, Path]:
    """Return the file that a path leads to, and the lowest folder above it that exists."""
    target = Path(os.path.realpath(path))
    # Also true of a link that leads in a circle: it is a link still.
    if os.path.lexists(target) and not stat.S_ISREG(target.lstat().st_mode):
        raise FileExistsError(errno.EEXIST, "is not a regular file")
    folder = target.parent
    # Missing folders are made when the file is written, inside the first that is there.
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder")
    return target, folder


def _refusal(error: OSError, path: str | Path) -> OSError:
    """Return the error of its kind (PermissionError, ...) that names the file asked for."""
    return OSError(error.errno, f"cannot be written: {error.strerror or error}", str(path))
