"""The style of pages and figures, from page.css and figure.css. It goes into the page, which needs
no other file."""

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
