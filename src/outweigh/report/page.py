"""The one way in which pages are made: jinja2 templates, where all that is not markup is escaped.

Images are embedded and nothing is loaded from elsewhere, so that a page can be sent, kept and
opened without a network. The one script, which sorts tables, is allowed by its hash and no other
can run.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import math
from typing import Any

import numpy as np

from outweigh.libraries import library


def render(template: str, **values: Any) -> str:
    """Return a page.

    Parameters
    ----------
    template : str
        A file of ``templates/``.
    **values
        What it shows.

    Returns
    -------
    str
        An HTML document.

    Raises
    ------
    MissingLibrary
        If jinja2 is not installed.
    """
    page: str = _environment().get_template(template).render(values)
    return page


@functools.cache
def _environment() -> Any:
    jinja2 = library("jinja2", "a report needs")
    loader = jinja2.PackageLoader("outweigh.report")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = loader.get_source(environment, "sort.js")[0]
    environment.globals |= {
        "sorts": False,
        "script": library("markupsafe", "a report needs").Markup(script),
        "script_hash": _base64(hashlib.sha256(script.encode()).digest()),
    }
    environment.filters |= {
        "base64": _base64,
        "begin": lambda text: text[0].upper() + text[1:],
        # A browser reads no other numbers, and rows are sorted by them.
        "finite": lambda value: float(np.nan_to_num(value)),
        "short": _short,
    }
    return environment


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _short(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}" if value < 1000 else f"{value:g}"
