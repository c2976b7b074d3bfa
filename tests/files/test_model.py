"""Models go to a file and come back the same; what is not a model is refused with a reason."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean, RobustSparseMean
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA
from outweigh.files.archive import read_member
from outweigh.files.model import ModelFileError, load_model, save_model

Array = NDArray[np.float64]

ESTIMATORS = {
    "RobustMean": lambda: RobustMean(contamination=0.1),
    "with covariance": lambda: RobustMean(covariance=np.eye(20) + 0.1),
    "RobustSparseMean": lambda: RobustSparseMean(3),
    "RobustPCA": lambda: RobustPCA(2),
    "RobustSparsePCA": lambda: RobustSparsePCA(1, n_nonzero=3),
    "not white": lambda: RobustPCA(2),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@cache
def rows(name: str = "") -> Array:
    X = np.random.default_rng(0).standard_normal((300, 20))
    X[:, :3] *= 2.0
    X[:20, 5:9] += 5.0
    return X * 0.7 ** np.arange(20) if name == "not white" else X


@cache
def fitted(name: str) -> RobustEstimator:
    return ESTIMATORS[name]().fit(rows(name))


def stored(name: str = "RobustMean") -> bytes:
    file = io.BytesIO()
    save_model(fitted(name), file)
    return file.getvalue()


@every_estimator
def test_a_model_comes_back_the_same(name: str) -> None:
    est, loaded = fitted(name), load_model(io.BytesIO(stored(name)))
    X = rows(name)
    assert type(loaded) is type(est)
    np.testing.assert_array_equal(loaded.score_samples(X), est.score_samples(X))
    np.testing.assert_array_equal(loaded.predict(X), est.predict(X))
    np.testing.assert_array_equal(loaded.explain(X).shares, est.explain(X).shares)
    assert str(loaded.certificate_) == str(est.certificate_)
    assert loaded.trace_ == est.trace_
    assert set(vars(loaded)) == set(vars(est))


def test_another_process_gives_the_same_scores(tmp_path: Path) -> None:
    for number, name in enumerate(ESTIMATORS):
        save_model(fitted(name), tmp_path / f"{number}.model")
        np.save(tmp_path / f"{number}.npy", rows(name))
    code = (
        "import sys, numpy as np; from outweigh.files.model import load_model\n"
        "for model in sys.argv[1:]:\n"
        "    X = np.load(model.replace('.model', '.npy'))\n"
        "    np.save(model.replace('.model', '.scores.npy'), load_model(model).score_samples(X))"
    )
    models = sorted(map(str, tmp_path.glob("*.model")))
    subprocess.run([sys.executable, "-c", code, *models], check=True)
    for number, name in enumerate(ESTIMATORS):
        expected = fitted(name).score_samples(rows(name))
        found = np.load(tmp_path / f"{number}.scores.npy")
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_loaded_model_can_be_refined_and_saved_again() -> None:
    loaded = load_model(io.BytesIO(stored("RobustSparseMean")))
    again = io.BytesIO()
    save_model(loaded, again)
    assert again.getvalue() == stored("RobustSparseMean")


def test_the_same_model_gives_the_same_bytes() -> None:
    assert stored() == stored()


def test_there_is_no_pickle_inside() -> None:
    with zipfile.ZipFile(io.BytesIO(stored("RobustSparsePCA"))) as archive:
        json.loads(archive.read("model.json"))
        arrays = [name for name in archive.namelist() if name != "model.json"]
        assert arrays
        assert all(name.endswith(".npy") for name in arrays)
        for name in arrays:
            np.load(io.BytesIO(archive.read(name)), allow_pickle=False)


def rewritten(change: dict[str, bytes | None], name: str = "RobustMean") -> io.BytesIO:
    """A copy of a model with some members replaced or left out."""
    copy = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(stored(name))) as old, zipfile.ZipFile(copy, "w") as new:
        for member in old.namelist():
            data = change.get(member, old.read(member))
            if data is not None:
                new.writestr(member, data)
    copy.seek(0)
    return copy


def test_many_names_of_one_array_take_no_more_memory_than_it_does() -> None:
    model = content()
    model["state"]["location_"] = {"tuple": [{"array": 0}] * 20_000}
    large = io.BytesIO()
    np.save(large, np.zeros(1_000_000))
    archive = rewritten(
        {"model.json": json.dumps(model).encode(), "arrays/0.npy": large.getvalue()}
    )
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        load_model(archive)
    assert tracemalloc.get_traced_memory()[1] < 200_000_000
    tracemalloc.stop()


def content(name: str = "RobustMean") -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(stored(name))) as archive:
        return dict(json.loads(archive.read("model.json")))


def with_json(name: str = "RobustMean", **changes: object) -> io.BytesIO:
    text = json.dumps({**content(name), **changes}).encode()
    return rewritten({"model.json": text}, name)


def with_state(name: str = "RobustMean", **changes: object) -> io.BytesIO:
    return with_json(name, state={**content(name)["state"], **changes})


def with_certificate(**changes: object) -> io.BytesIO:
    certificate = content()["state"]["certificate_"]
    return with_state(certificate_={**certificate, "fields": {**certificate["fields"], **changes}})


def with_other_columns(name: str) -> io.BytesIO:
    """A model whose rows are scored in the columns that another array names."""
    model = content(name)
    fields = model["state"]["_score"]["fields"]
    fields["standardizer"]["fields"]["columns"] = model["state"]["_incomplete"]
    return with_json(name, **model)


def pickled() -> io.BytesIO:
    return io.BytesIO(pickle.dumps({"format": "outweigh model"}))


def truncated() -> io.BytesIO:
    return io.BytesIO(stored()[:-200])


def flipped() -> io.BytesIO:
    data = bytearray(stored())
    member = zipfile.ZipFile(io.BytesIO(bytes(data))).getinfo("model.json")
    # Inside of what is compressed: of the headers some bytes say nothing.
    data[member.header_offset + 30 + len("model.json") + member.compress_size // 2] ^= 0xFF
    return io.BytesIO(bytes(data))


def foreign() -> io.BytesIO:
    file = io.BytesIO()
    np.savez(file, X=np.eye(3))
    file.seek(0)
    return file


REFUSED = {
    "pickle": (pickled, "is not an outweigh model, or is damaged"),
    "truncated": (truncated, "is not an outweigh model, or is damaged"),
    "one bit": (flipped, "is damaged"),
    "npz": (foreign, "is a zip file, but not an outweigh model"),
    "edited": (lambda: rewritten({"model.json": b"{}"}), "is damaged or was not written by"),
    "array": (lambda: rewritten({"arrays/0.npy": b"x"}), "is damaged or was not written by"),
    "missing": (lambda: rewritten({"arrays/1.npy": None}), "no item named 'arrays/1.npy'"),
    "format": (lambda: with_json(format="other"), "is not an outweigh model"),
    "schema": (lambda: with_json(schema=99), "was written in schema 99"),
    "class": (lambda: with_json(estimator="os.system"), "was not written by outweigh"),
    "offset": (lambda: with_state(offset_=float("-inf")), "offset_ is -inf"),
    "offset of another kind": (lambda: with_state(offset_="low"), "is damaged"),
    "no score": (lambda: with_state(_score=None), "is damaged"),
    "a list": (lambda: with_state(offset_=[1.0, 2.0]), "never written"),
    "truth for a number": (lambda: with_state(offset_=True), "offset_ of RobustMean is not"),
    "no certificate": (lambda: with_state(certificate_=None), "certificate_ of RobustMean is not"),
    "text in a record": (lambda: with_certificate(objective="low"), "objective of Certificate is"),
    "no floor": (lambda: with_certificate(noise_floor=None), "noise_floor of Certificate is not"),
    "more digits than are written": (lambda: with_certificate(objective=10**30), "more digits"),
    "a score of other columns": (lambda: with_other_columns("RobustMean"), "is damaged"),
    "an array in a record": (
        lambda: with_certificate(moreau={"array": 0}),
        "moreau of Certificate is not",
    ),
    "record": (
        lambda: with_state(_score={"record": "Popen", "fields": {}}),
        "was not written by outweigh",
    ),
    "attribute": (lambda: with_state(__class__=1), "sets attributes"),
    "unknown attribute": (lambda: with_state(extra_=1), "sets attributes"),
    "no attributes": (lambda: with_json(state={}), "lacks some"),
    "shape": (lambda: with_state(n_features_in_=21), r"has the shape \(20,\)"),
    "no array": (lambda: with_state(location_=1.0), r"location_ has the shape \(\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_damaged_or_foreign_file_is_refused_with_a_reason(case: str) -> None:
    make, reason = REFUSED[case]
    with pytest.raises(ModelFileError, match=reason):
        load_model(make())


@pytest.mark.parametrize("bad", ["a word", float("nan")])
@every_estimator
def test_no_attribute_takes_what_is_no_number_for_one(name: str, bad: object) -> None:
    for key in content(name)["state"]:
        with pytest.raises(ModelFileError, match="is damaged"):
            load_model(with_state(name, **{key: bad}))


# Those that a fit may not have: of missing values, of a sample.
ABSENT = {"subsample_", "_weights_of_sample", "_medians"}


@every_estimator
def test_no_attribute_may_be_missing_but_those_that_a_fit_may_not_have(name: str) -> None:
    for key in set(content(name)["state"]) - ABSENT:
        with pytest.raises(ModelFileError, match="is damaged"):
            load_model(with_state(name, **{key: None}))


@every_estimator
def test_parameters_are_those_that_a_fit_would_take(name: str) -> None:
    for key in content(name)["parameters"]:
        with pytest.raises(ModelFileError, match=f"The '{key}' parameter of"):
            load_model(with_json(name, parameters={key: -5.5}))


@every_estimator
def test_no_array_of_zeros_leaves_a_row_without_a_score(name: str) -> None:
    # Rows at the origin of a scale of zero, above all.
    X = np.vstack([rows(name), np.zeros(20), fitted(name)._score.standardizer.origin])
    with zipfile.ZipFile(io.BytesIO(stored(name))) as archive:
        arrays = {m: archive.read(m) for m in archive.namelist() if m.endswith(".npy")}
    taken = 0
    for member, data in arrays.items():
        zeros = io.BytesIO()
        np.save(zeros, np.zeros_like(np.load(io.BytesIO(data))))
        try:
            est = load_model(rewritten({member: zeros.getvalue()}, name))
        except ModelFileError:
            continue
        taken += 1
        assert np.isfinite(est.score_samples(X)).all()
    # Weights, components and centres of zero are as good as any.
    assert 0 < taken < len(arrays)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="No such file"):
        load_model(tmp_path / "none")
    with pytest.raises(ModelFileError, match="Is a directory"):
        load_model(tmp_path)


def test_an_estimator_that_is_not_fitted_is_not_saved() -> None:
    with pytest.raises(ValueError, match="is not fitted"):
        save_model(RobustMean(), io.BytesIO())


def repacked(method: int = zipfile.ZIP_DEFLATED, extra: dict[str, bytes] | None = None) -> bytes:
    copy = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(stored())) as old,
        zipfile.ZipFile(copy, "w", method) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
        for name, data in (extra or {}).items():
            new.writestr(name, data)
    return copy.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_compression_is_refused(method: int) -> None:
    with pytest.raises(ModelFileError, match="encrypted, or compressed in an unusual manner"):
        load_model(io.BytesIO(repacked(method)))


def test_an_encrypted_member_is_refused() -> None:
    data = bytearray(stored())
    # The first bit of the flags, in the entry of the directory.
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ModelFileError, match="encrypted"):
        load_model(io.BytesIO(bytes(data)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_occurs_twice_is_refused() -> None:
    with pytest.raises(ModelFileError, match="two members have one name"):
        load_model(io.BytesIO(repacked(extra={"model.json": b""})))


def test_a_model_that_holds_more_than_allowed_is_refused_before_it_is_read() -> None:
    bomb = repacked(extra={"padding": bytes(30_000_000)})
    assert len(bomb) < 200_000
    with pytest.raises(ModelFileError, match=r"holds more than 0\.02 GB .*max_gigabytes"):
        load_model(io.BytesIO(bomb), max_gigabytes=0.02)
    assert isinstance(load_model(io.BytesIO(bomb)), RobustMean)


def with_array(array: Array) -> io.BytesIO:
    """A model whose first array is another one."""
    file = io.BytesIO()
    np.save(file, array)
    return rewritten({"arrays/0.npy": file.getvalue()})


def test_an_array_of_another_shape_is_refused() -> None:
    with zipfile.ZipFile(io.BytesIO(stored())) as archive:
        first = np.load(io.BytesIO(archive.read("arrays/0.npy")))
    assert isinstance(load_model(with_array(first)), RobustMean)
    with pytest.raises(ModelFileError, match="has the shape"):
        load_model(with_array(first[:, None]))
    with pytest.raises(ModelFileError, match="has the shape"):
        load_model(with_array(np.zeros(7)))


def test_an_array_of_another_kind_than_the_attribute_is_refused() -> None:
    with pytest.raises(ModelFileError, match="is not of the type"):
        load_model(with_array(np.full(20, "a")))
    with pytest.raises(ModelFileError, match="is not of the type"):
        load_model(with_array(np.ones(20, dtype=np.int64)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ModelFileError, match="does not hold finite numbers"):
        load_model(with_array(np.full(20, bad)))


def test_an_estimator_with_numbers_that_are_not_finite_is_not_saved() -> None:
    est = ESTIMATORS["RobustMean"]().fit(rows())
    est.location_[0] = np.nan
    with pytest.raises(ValueError, match="does not hold finite numbers"):
        save_model(est, io.BytesIO())


def test_a_model_takes_no_more_memory_than_it_declares() -> None:
    """Deflated zeros, a thousand times smaller than what they hold, behind a small declaration."""
    data = bytearray(repacked(extra={"arrays/99.npy": bytes(300_000_000)}))
    at = data.rindex(b"PK\x01\x02") + 24
    data[at : at + 4] = (1000).to_bytes(4, "little")
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        tracemalloc.start()
        with pytest.raises((zipfile.BadZipFile, ValueError)):
            read_member(archive, "arrays/99.npy")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20_000_000
