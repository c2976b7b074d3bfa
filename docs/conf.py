"""Sphinx configuration; `make docs` builds into docs/_build."""

from importlib.metadata import version as installed_version

project = "outweigh"
author = "the outweigh developers"
copyright = f"2026, {author}"
version = release = installed_version("outweigh")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"outweigh {release}"

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
