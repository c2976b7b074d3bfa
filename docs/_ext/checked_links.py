"""Fails the build where a page links to what is not there, or loads something from elsewhere.

Sphinx checks references by name; addresses that are written out, and anchors, it does not.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

_logger = logging.getLogger(__name__)

# What a page loads, as opposed to what a reader may follow.
_LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.update({found[name] for name in ("id", "name") if name in found})
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if found.get(_LOADED.get(tag, "")):
            self.loaded.append(found[_LOADED[tag]])


def _check(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    root = Path(app.outdir)
    pages = {path: _Page(path.read_text("utf-8")) for path in root.rglob("*.html")}
    for path, page in pages.items():
        for address in page.links + page.loaded:
            if fault := _fault(address, path, page, pages):
                _logger.warning("%s: %s: %s", path.relative_to(root), address, fault)


def _fault(address: str, path: Path, page: _Page, pages: dict[Path, _Page]) -> str | None:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        outside = parts.scheme != "data" and address in page.loaded
        return "is loaded from elsewhere" if outside else None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return "does not exist"
    # Fragments of pages that are not HTML, or were written by the theme, are none of ours.
    if target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "has no such anchor"
    return None


def setup(app: Sphinx) -> ExtensionMetadata:
    """Look at the pages when all are written; -W makes a fault an error."""
    # After the theme, which writes files as late as this.
    app.connect("build-finished", _check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
