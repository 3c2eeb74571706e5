"""The documentation site: `python -m sphinx -W --keep-going docs site`; `site/index.html` opens from disk."""

import sys
import warnings
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # reference_pages

import inscape

project = "inscape"
author = "The inscape authors"
project_copyright = author
version = release = inscape.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "reference_pages",
]
exclude_patterns = [
    "package-index.md",
    "gallery",
    "tutorials",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
default_role = "code"
highlight_language = "python"
smartquotes = False

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
maximum_signature_line_length = 80
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

sphinx_gallery_conf = {
    "examples_dirs": ["gallery", "tutorials"],
    "gallery_dirs": ["auto_gallery", "auto_tutorials"],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"\.py$",
    "backreferences_dir": "reference/examples",
    "doc_module": ("inscape",),
    "prefer_full_module": {"inscape"},
    "only_warn_on_example_error": False,
    "abort_on_example_error": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "min_reported_time": 20,
    "show_memory": False,
    "thumbnail_size": (480, 360),
    "image_scrapers": ("matplotlib", "reference_pages.scrape_files"),
    "reset_modules": ("reference_pages.reset",),
    "matplotlib_animations": False,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib|Axes|Figure",
}

WIDE_PAGES = [
    "which-measure",
    "glossary",
    *(f"auto_{kind}/index" for kind in ("gallery", "tutorials")),
    *(f"auto_{kind}/{path.stem}" for kind in ("gallery", "tutorials") for path in HERE.glob(f"{kind}/*.py")),
]
"""Pages without a table of contents beside them: their tables and code take the room."""

html_theme = "pydata_sphinx_theme"
html_title = f"inscape {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "logo": {"text": "inscape"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in WIDE_PAGES}},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "search": [], "concepts": [], "how-it-works": []}
html_show_sphinx = False
html_show_sourcelink = html_copy_source = False
html_math_renderer = "mathml"


def _inline(self, node):
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Formulas as MathML, which browsers draw themselves: a page that opens from disk loads nothing."""
    warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
