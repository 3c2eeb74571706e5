"""The viewer's files as the three hosts need them: modules joined into one script, the style, the page.

The modules in `viewer/` are plain ES modules that import each other by `import { a } from "./name.js"`, one
line each. Joined in the order of `MODULES`, without these lines, they are one module that runs anywhere.
"""

import re
from functools import cache
from html import escape
from importlib.resources import files

MODULES = (
    "messages",
    "elements",
    "colours",
    "camera",
    "triangles",
    "painter",
    "thumbnails",
    "strip",
    "readout",
    "profile",
    "number",
    "stage",
    "keeping",
    "address",
    "channel",
    "viewer",
)
"""Each imports from those before it alone."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w]+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.MULTILINE)


@cache
def script() -> str:
    """All modules as one, with the exports of the last."""
    texts = []
    for name in MODULES:
        text = _IMPORT.sub("", _read(f"{name}.js"))
        texts.append(text if name == MODULES[-1] else _EXPORT.sub("", text))
    return "\n".join(texts)


@cache
def style() -> str:
    """The style sheet."""
    return _read("viewer.css")


def page(title: str) -> str:
    """The page of the server, which loads script and style from beside itself."""
    return _read("page.html").replace("{{title}}", escape(title))


@cache
def _read(name: str) -> str:
    return (files("inscape.explorer") / "viewer" / name).read_text(encoding="utf-8")
