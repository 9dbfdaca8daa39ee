"""Sphinx's settings for the site (tools/docs.sh)."""

import re
from pathlib import Path

from autoapi._objects import PythonObject

project = "ctxc"
root_doc = "README"
extensions = ["myst_nb", "autoapi.extension", "sphinx_copybutton"]
exclude_patterns = ["autoapi/index.rst"]

# Pages are written as GitHub shows them.
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
myst_links_external_new_tab = False
nb_execution_mode = "off"
suppress_warnings = [
    "misc.highlighting_failure",  # consoles with commands of more than one language
    "myst.header",                # a page may begin with a heading of the second level
    "mystnb.unknown_mime_type",
]

# The reference, from the sources and their types; nothing is imported. tools/docs.sh names the folder: autoapi_dirs.
autoapi_options = ["members", "undoc-members", "show-module-summary", "imported-members"]
autoapi_add_toctree_entry = False
autoapi_keep_files = False
autoapi_member_order = "groupwise"
autodoc_typehints = "signature"
default_role = "literal"

# A button copies the commands of a console, without what they print.
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "END"
copybutton_exclude = ".linenos, .gp"

html_theme = "furo"
html_title = "ctxc"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False


def summary(self):
    """The first sentence, which autoapi cuts at the end of its line."""
    text = " ".join(self.docstring.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[^.].[.:])\s+(?=[A-Z`>])", text + " ")[0].strip().rstrip(":")


PythonObject.summary = property(summary)


def setup(app):
    # People open the folder, and look for this name.
    app.connect("build-finished", lambda app, error: error or front(Path(app.outdir)))


def front(folder):
    (folder / "index.html").write_text('<!doctype html><meta charset="utf-8"><title>ctxc</title>'
                                       '<meta http-equiv="refresh" content="0; url=README.html">'
                                       '<a href="README.html">ctxc</a>\n')
