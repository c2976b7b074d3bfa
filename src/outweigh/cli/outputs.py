"""Files that a command is asked to write: checked before any work, and what is in them."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from outweigh.files.frames import inert, named_frame
from outweigh.files.table import DataError
from outweigh.files.writing import check_target
from outweigh.libraries import versions
from outweigh.report import Fitted


def check_outputs(arguments: argparse.Namespace, **endings: tuple[str, ...]) -> list[str]:
    """Refuse files that exist, cannot be written, are the input, given twice or of unknown kind.

    Parameters
    ----------
    arguments : argparse.Namespace
        With ``file``, which is read, and ``force``: whether files that exist may be overwritten.
    **endings : tuple of str
        For each option that names a file, how the name may end.

    Returns
    -------
    list of str
        The files that were asked for.
    """
    asked = {f"--{key}": getattr(arguments, key) for key in endings if getattr(arguments, key)}
    # What each file is already; Path.resolve fails at a link that leads in a circle.
    known = {} if arguments.file == "-" else {os.path.realpath(arguments.file): "is the input"}
    for option, name in asked.items():
        allowed = endings[option.removeprefix("--")]
        path, resolved = Path(name), os.path.realpath(name)
        if allowed and path.suffix.lower() not in allowed:
            raise DataError(f"{option}: {name}: the name must end in {' or '.join(allowed)}")
        if resolved in known:
            raise DataError(f"{option}: {name}: {known[resolved]}")
        known[resolved] = f"is already written by {option}"
        try:
            check_target(path)
        except OSError as error:
            said = f"{error.strerror}; choose a folder that you may write to"
            raise DataError(f"{option}: {name}: {said}") from error
        if path.exists() and not arguments.force:
            raise DataError(f"{option}: {name}: exists already; --force overwrites it")
    return list(asked.values())


def result_json(fitted: Fitted) -> str:
    """Return the result as JSON."""
    est, certificate, found = fitted.estimator, fitted.certificate, fitted.explanation
    names = list(fitted.names)

    def named(values: Any) -> dict[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    if fitted.is_mean:
        estimate: dict[str, Any] = {
            "location": named(est.location_),
            "plain_mean": named(fitted.plain_mean),
        }
        if hasattr(est, "support_"):
            estimate["support"] = [names[j] for j in est.support_]
    else:
        estimate = {
            "components": [named(component) for component in est.components_],
            "explained_variance": est.explained_variance_.tolist(),
            "mean": named(est.mean_),
        }
    distrusted = [
        {
            "row": str(found.labels[i]),
            "score": float(found.scores[i]),
            "weight": float(fitted.weights[found.rows[i]]),
            "reasons": [
                {"feature": name, "share": share, "deviation": away}
                for name, share, away, _ in found.features_of(i)
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
        "clean_level": asdict(certificate.noise_floor),
        **estimate,
        "distrusted": distrusted,
        "notes": list(fitted.notes),
        "parameters": dict(fitted.parameters),
        "versions": dict(versions()),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def result_csv(fitted: Fitted) -> str:
    """Return the estimate as CSV, one line for each feature."""
    columns = [name.replace(" ", "_") for name in fitted.estimate]
    values = np.column_stack(list(fitted.estimate.values()))
    names = [inert(name) for name in fitted.names]
    return str(named_frame(values, columns, names).to_csv(index_label="feature"))
