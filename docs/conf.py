"""Sphinx configuration; `make docs` runs the gallery and builds into docs/_build, offline."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "outweigh"
author = "the outweigh developers"
copyright = f"2026, {author}"
version = release = installed_version("outweigh")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Ours, in docs/_ext.
    "build_time_math",
    "checked_links",
]
exclude_patterns = ["_build", "_templates", "_ext"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"outweigh {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00798c", "color-brand-content": "#00798c"},
    "dark_css_variables": {"color-brand-primary": "#5cc4d4", "color-brand-content": "#5cc4d4"},
}

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# A reference to a name that does not exist is an error too.
nitpicky = True

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery", "../examples/tutorials"],
    "gallery_dirs": ["auto_gallery", "auto_tutorials"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("outweigh",),
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("gallery_style.reset",),
    # An example that fails, or warns, is a page that misleads.
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 10**6,
    "write_computation_times": False,
}
