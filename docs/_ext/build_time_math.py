"""Formulas as MathML, written when the site is built: pages need neither a script nor a network.

A browser sets MathML well only in a font made for it, and few systems have one. So the site brings
its own: the part of STIX Two Math, which `ziamath` ships, that mathematics here can need.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from docutils import nodes
from fontTools import subset
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

# What latex2mathml does not know, in words that it does.
_OTHER_WORDS = {r"\arg": r"\operatorname{arg}\,"}


def _write(translator: HTML5Translator, tex: str, display: str) -> None:
    for command, known in _OTHER_WORDS.items():
        tex = tex.replace(command, known)
    mathml = convert(tex.strip(), display=display)
    # A command that is not known comes out as its own name: better no page than a wrong formula.
    if "\\" in mathml.replace("<mo>\\</mo>", ""):
        raise ValueError(f"latex2mathml does not know a command in: {tex}")
    translator.body.append(mathml)
    raise nodes.SkipNode


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    _write(translator, node.astext(), "inline")


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append('<div class="math-block">')
    try:
        _write(translator, node.astext(), "block")
    finally:
        translator.body.append("</div>")


# Latin, Greek, operators, arrows, brackets, and the letters of mathematics.
_LETTERS = "U+20-7E,A0-FF,370-3FF,2000-23FF,2900-2AFF,27C0-27EF,1D400-1D7FF"


def _write_font(app: Sphinx, exception: Exception | None) -> None:
    target = Path(app.outdir) / "_static" / "math.woff"
    if exception is not None or app.builder.format != "html" or target.exists():
        return
    with as_file(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf") as font:
        subset.main(
            [str(font), f"--unicodes={_LETTERS}", "--flavor=woff", f"--output-file={target}"]
        )


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer under the name "mathml", and have the font written."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("build-finished", _write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
