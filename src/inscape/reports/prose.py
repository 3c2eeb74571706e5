"""Markdown as HTML that can do no harm."""

from functools import cache
from typing import Any


def html(markdown: str) -> Any:
    """The notes of a study: raw HTML is shown as text, pictures from elsewhere are links, tables sort.

    >>> str(html("*r* = 0.9 <script>")).strip()
    '<p><em>r</em> = 0.9 &lt;script&gt;</p>'
    """
    from markupsafe import Markup

    return Markup(_parser().render(markdown))


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    rules: Any = parser.renderer.rules  # type: ignore[attr-defined]
    rules["table_open"] = lambda *a: '<div class="scroll" tabindex="0"><table class="sortable">'
    rules["table_close"] = lambda *a: "</table></div>\n"
    rules["th_open"] = lambda tokens, i, *a: (
        f'<th scope="col"{_side(tokens[i])} aria-sort="none"><button type="button">'
    )
    rules["th_close"] = lambda *a: "</button></th>\n"
    rules["td_open"] = lambda tokens, i, *a: f"<td{_side(tokens[i])}>"
    for place in ("heading_open", "heading_close"):
        rules[place] = _heading
    return parser


def _side(token: Any) -> str:
    return ' class="number"' if "right" in str(token.attrs.get("style", "")) else ""


def _heading(tokens: Any, i: int, *rest: Any) -> str:
    """Headings below those of the report."""
    level = min(6, int(tokens[i].tag[1:]) + 2)
    return f"<h{level}>" if tokens[i].nesting == 1 else f"</h{level}>\n"
