"""One robust mean from four kinds of storage, none of which is read as a whole."""

import tempfile
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd

from outweigh import RobustSparseMean
from outweigh.adversaries import make
from outweigh.files import open_table

ROWS_A_CHUNK = 2000  # so few for the example; chunks of 10 to 100 MB are good


def robust_mean():
    return RobustSparseMean(n_nonzero=5, contamination=0.1)


def from_zarr(path):
    X = da.from_zarr(path)  # in the chunks that it was written in
    return robust_mean().fit(X)


def from_parquet(path):
    table = dd.read_parquet(path)  # a partition is a chunk
    return robust_mean().fit(table)


def from_hdf5(path):
    with h5py.File(path) as file:
        X = da.from_array(file["X"], chunks=(ROWS_A_CHUNK, -1))
        return robust_mean().fit(X)


def from_npy(path):
    X = open_table(path).values  # in parts of 64 MB
    return robust_mean().fit(X)


def main():
    sample = make("wrong_support", 8000, 50, 5, 0.1, random_state=2000)
    X = sample.X
    parts = da.from_array(X, chunks=(ROWS_A_CHUNK, -1))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts.to_zarr(str(folder / "rows.zarr"))
        frame = pd.DataFrame(X).add_prefix("x")
        (folder / "rows.parquet").mkdir()
        for part, start in enumerate(range(0, len(frame), ROWS_A_CHUNK)):
            rows = frame[start : start + ROWS_A_CHUNK]
            rows.to_parquet(folder / "rows.parquet" / f"part-{part}.parquet")
        with h5py.File(folder / "rows.h5", "w") as file:
            file["X"] = X
        np.save(folder / "rows.npy", X)

        print("plain mean: error", f"{np.linalg.norm(X.mean(axis=0) - sample.truth):.3f}")
        for read, file in (
            (from_zarr, "rows.zarr"),
            (from_parquet, "rows.parquet"),
            (from_hdf5, "rows.h5"),
            (from_npy, "rows.npy"),
        ):
            est = read(str(folder / file))
            error = np.linalg.norm(est.location_ - sample.truth)
            print(f"{file}: error {error:.3f} in {est.n_passes_} passes")


if __name__ == "__main__":
    main()
