"""Files that a command is asked to write: checked before any work, written in one piece."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from outweigh.cli.files import write_whole
from outweigh.fit_report import Fitted
from outweigh.io import DataError, named_frame, weights_frame

__all__ = ["check_outputs", "result_csv", "result_json", "weights_csv", "write"]


def check_outputs(paths: Mapping[str, str | None], source: str, force: bool) -> None:
    """Refuse files that exist, cannot be written, are the input, given twice or of unknown kind."""
    endings = {"--out": (".json", ".csv"), "--weights": (".csv",), "--report": (".html", ".htm")}
    seen: dict[Path, str] = {}
    for option, name in paths.items():
        if name is None:
            continue
        path = Path(name)
        wanted = endings.get(option)
        if wanted and path.suffix.lower() not in wanted:
            raise DataError(f"{option}: {name}: the name must end in {' or '.join(wanted)}")
        resolved = path.resolve()
        if resolved in seen:
            raise DataError(f"{option}: {name}: is already written by {seen[resolved]}")
        seen[resolved] = option
        if source != "-" and resolved == Path(source).resolve():
            raise DataError(f"{option}: {name}: is the input")
        if path.is_dir():
            raise DataError(f"{option}: {name}: is a folder")
        if path.exists() and not force:
            raise DataError(f"{option}: {name}: exists already; --force overwrites it")
        _check_writable(option, path)


def _check_writable(option: str, path: Path) -> None:
    """Refuse, before any work, a file that could not be written after it."""
    folder = path.parent
    # Missing folders are made when the file is written, inside the first that is there.
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise DataError(f"{option}: {path}: cannot be written: {folder} is not a folder")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(
            f"{option}: {path}: cannot be written: {folder}: {error.strerror}; choose a folder "
            "that you may write to"
        ) from error


def write(name: str, data: str | bytes) -> Path:
    """Write a file in one piece."""
    return write_whole(Path(name), data.encode() if isinstance(data, str) else data)


def result_json(fitted: Fitted) -> str:
    """Return the result as JSON."""
    est, certificate = fitted.estimator, fitted.certificate
    found = fitted.explanation
    names = list(fitted.names)
    estimate: dict[str, Any]
    if fitted.is_mean:
        estimate = {
            "location": dict(zip(names, est.location_.tolist(), strict=True)),
            "plain_mean": dict(zip(names, fitted.plain_mean.tolist(), strict=True)),
        }
        if hasattr(est, "support_"):
            estimate["support"] = [names[j] for j in est.support_]
    else:
        estimate = {
            "components": [dict(zip(names, row, strict=True)) for row in est.components_.tolist()],
            "explained_variance": est.explained_variance_.tolist(),
            "mean": dict(zip(names, est.mean_.tolist(), strict=True)),
        }
    distrusted = [
        {
            "row": str(found.labels[i]),
            "score": float(found.scores[i]),
            "weight": float(fitted.weights[found.rows[i]]),
            "reasons": [
                {"feature": names[j], "share": float(share), "deviation": float(away)}
                for j, share, away in zip(
                    found.features[i], found.shares[i], found.deviations[i], strict=True
                )
            ],
        }
        for i in range(len(found))
    ]
    content = {
        "what": fitted.title,
        "source": fitted.source,
        "n_samples": len(fitted.labels),
        "n_subsampled": None if est.subsample_ is None else int(est.subsample_.size),
        "n_features": len(names),
        "verdict": certificate.verdict,
        "clean": bool(certificate.clean),
        "contamination": float(est.contamination_),
        "contamination_bound": certificate.contamination_bound,
        "objective": certificate.objective,
        "clean_level": {
            "median": certificate.noise_floor.median,
            "upper": certificate.noise_floor.upper,
        },
        **estimate,
        "distrusted": distrusted,
        "notes": list(fitted.notes),
        "parameters": dict(fitted.parameters),
        "versions": dict(fitted.versions),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def result_csv(fitted: Fitted) -> str:
    """Return the estimate as CSV, one line for each feature."""
    est = fitted.estimator
    if fitted.is_mean:
        columns = ["robust_mean", "plain_mean"]
        values = np.column_stack([est.location_, fitted.plain_mean])
    else:
        columns = [f"component_{j + 1}" for j in range(est.components_.shape[0])]
        values = est.components_.T
    frame = named_frame(values, columns, fitted.names)
    return str(frame.to_csv(index_label="feature"))


def weights_csv(fitted: Fitted, id_name: str | None) -> str:
    """Return what the fit says of each row as CSV."""
    flagged = np.zeros(len(fitted.labels), dtype=bool)
    flagged[fitted.explanation.rows] = True
    frame = weights_frame(fitted.labels, fitted.weights, fitted.scores, flagged, id_name or "row")
    reasons = {int(row): i for i, row in enumerate(fitted.explanation.rows)}
    frame["reasons"] = [
        fitted.explanation.reasons(reasons[i]) if i in reasons else ""
        for i in range(len(fitted.labels))
    ]
    return str(frame.to_csv(index=False))
