"""``outweigh score``: which rows of a new file are to be distrusted, by a saved model."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from outweigh.cli.exit_codes import OK
from outweigh.cli.outputs import check_outputs, write
from outweigh.cli.progress import sparing_progress
from outweigh.cli.reading import notes_on, read_rows, scheduler_of
from outweigh.cli.text import clean, short
from outweigh.io import DataError, named_frame, weights_frame
from outweigh.model_file import load_model

__all__ = ["score"]

_ROWS = 10


def score(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.out and not arguments.out.lower().endswith(".csv"):
        raise DataError(f"--out: {arguments.out}: the name must end in .csv")
    check_outputs({"--out": arguments.out}, arguments.file, arguments.force)
    with scheduler_of(arguments), sparing_progress(sys.stderr):
        return _score(arguments)


def _score(arguments: argparse.Namespace) -> int:
    model = load_model(arguments.model)
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    table = read_rows(arguments, names or None, min_rows=1)
    rows: Any = table.values
    if names and table.lazy:
        # The columns were chosen by name; a Dask array does not carry the names on.
        del model.feature_names_in_
    elif names:
        rows = named_frame(table.values, table.columns, table.labels)
    found = model.explain(rows)
    n = len(table.labels)
    # Files first: whoever reads the summary may leave, as `| head` does.
    if arguments.out:
        scores = np.asarray(model.score_samples(rows))
        flagged = np.zeros(n, dtype=bool)
        flagged[found.rows] = True
        frame = weights_frame(
            table.labels, np.zeros(n), scores, flagged, table.id_column or "row"
        ).drop(columns="weight")
        reasons = {int(row): found.reasons(i) for i, row in enumerate(found.rows)}
        frame["reasons"] = [reasons.get(i, "") for i in range(n)]
        write(arguments.out, frame.to_csv(index=False))
    print(f"{type(model).__name__} from {arguments.model} on {table.source}: {n:,} rows")
    for note in notes_on(table):
        print(f"  {note}")
    print(f"\n{len(found):,} of {n:,} rows ({len(found) / n:.1%}) are distrusted.")
    labels = [table.labels[i] for i in found.rows]
    width = max([len(short(label)) for label in labels[:_ROWS]], default=0)
    for i in range(min(len(found), _ROWS)):
        print(f"  {short(labels[i]):<{width}}  {clean(found.reasons(i))}")
    if arguments.out:
        print(f"\nWritten: {arguments.out}")
    return OK
