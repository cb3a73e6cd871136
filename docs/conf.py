"""Configuration of the documentation site: `sphinx-build -W -j auto docs docs/_build/html`; with `-t quick` nothing is run."""

import os
import sys
from importlib.resources import files
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # `python -m odesim` on pages is this one
os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process runs on each core, and threads of products would wait for one another
os.environ.pop("MPLBACKEND", None)  # pages need the pictures that notebooks draw by themselves

project = "odesim"
copyright = "2026, odesim contributors"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "cells",
    "mathml",
    "docstrings",
    "codelines",
    "tables",
    "pages",
]
exclude_patterns = ["_build", "paper"]
nitpicky = True
default_role = "code"  # single backticks of help texts
smartquotes = False

html_theme = "furo"
html_title = "odesim"
html_favicon = html_logo = "_static/icon.svg"
html_static_path = ["_static", str(files("ziamath") / "fonts")]
html_extra_path = ["generated/extra"]
html_css_files = ["odesim.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True, "footer_icons": []}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off" if "quick" in tags else "cache"  # noqa: F821 - Sphinx defines it
nb_execution_excludepatterns = ["generated/*"]  # the extension pages executes these
nb_execution_timeout = 1800  # s a cell, on a busy machine
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_render_markdown_format = "myst"  # a System is shown as Markdown with formulas

autodoc_typehints = "none"
autodoc_member_order = "bysource"
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp, .go"
