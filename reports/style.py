"""The style of pages and figures, and their script, from page.css, figure.css and zoom.js. They go
into the page, which needs no other file."""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent


def packed(name: str) -> str:
    """The file without its comments and line breaks."""
    text = re.sub(r"/\*.*?\*/", "", (HERE / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(text.split())


FIGURE = packed("figure.css")
STYLE = f"{FIGURE} {packed('page.css')}"
# A figure in its own file has the same colours.
ALONE = f"svg {{ background: var(--paper); }} {FIGURE}"
SCRIPT = "\n".join(line for line in (HERE / "zoom.js").read_text(encoding="utf-8").splitlines()
                   if line.strip() and not line.lstrip().startswith("//"))
