"""The site that `make docs` builds from the Markdown files of this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import ensue

project = "Ensue"
author = "Ensue maintainers"
copyright = author
version = release = ensue.__version__

extensions = ["myst_parser", "generator.commands", "generator.contents", "generator.reference"]
exclude_patterns = ["generator"]
nitpicky = True
# Types in signatures are often others' (torch's) or internal, and have no page here.
nitpick_ignore_regex = [("py:.*", ".*")]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
smartquotes = False  # h' is a new state, not a quotation

html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"
html_title = f"Ensue {version}"
html_static_path = ["generator/static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "generator" / "scorer.js")
html_copy_source = False
html_show_sphinx = False
