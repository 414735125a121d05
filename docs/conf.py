"""The documentation site: `make docs` builds it into build/docs.

Everything is local. Formulas become MathML, so no script is needed for them; search
is Sphinx's own, which works from a disk.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_extensions"), str(DOCS.parent)]

import algoscope  # noqa: E402

project = "algoscope"
author = "The algoscope authors"
version = release = algoscope.__version__
html_title = f"algoscope {release}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "command_help",
    "formulas",
    "glossary_links",
    "live_playground",
    "public_names",
]
exclude_patterns = ["_extensions", "_build"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which fails from a disk
html_show_copyright = html_show_sphinx = False
pygments_style, pygments_dark_style = "tango", "monokai"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
if not find_spec("torch"):  # an extra; that notebook is then shown without output
    nb_execution_excludepatterns = ["notebooks/pytorch_model.md"]

# Docstrings write code in single backticks.
default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 60
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# Types of other packages, and of our own that are not public, have no page here.
nitpick_ignore_regex = [("py:.*", ".*")]
