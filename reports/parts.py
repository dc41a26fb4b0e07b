"""What HTML pages are made of: tables, lists, figures, and the page around them."""

from collections.abc import Iterable, Sequence
from html import escape

from . import words
from .drawing import svg
from .evidence import Claim
from .drawing.figure import Figure
from .style import SCRIPT, STYLE

BRAND = '<p class="brand">Tollens</p>'


def row(headings: Sequence[str], cells: Iterable[str], attributes: str = "") -> str:
    """A row of a table; on a phone the table is a list, in which each cell has its label."""
    return f"<tr{attributes}>" + "".join(
        f'<td data-label="{heading}">{cell}</td>' if heading and cell else f"<td>{cell}</td>"
        for heading, cell in zip(headings, cells)) + "</tr>"


def head_cells(headings: Sequence[str]) -> str:
    return "".join(f'<th scope="col">{heading}</th>' if heading else "<td></td>"
                   for heading in headings)


def stacked(kind: str, headings: Sequence[str], rows: Iterable[str]) -> str:
    head = head_cells(headings)
    return (f'<table class="stacked {kind}"><thead><tr>{head}</tr></thead>'
            f'<tbody>{"".join(rows)}</tbody></table>')


def table(headings: Sequence[str], rows: Iterable[Iterable[str]], numbers: int = 99) -> str:
    """Cells are HTML; columns from `numbers` on are right-aligned."""
    head = head_cells(headings)
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{cell}</td>' if i >= numbers else f"<td>{cell}</td>"
                         for i, cell in enumerate(row)) + "</tr>" for row in rows)
    named = escape(", ".join(filter(None, headings)))
    return (f'<div class="wide" tabindex="0" role="group" aria-label="Table of {named}"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 99) -> str:
    """Cells are plain text, which is escaped."""
    return table(headings, ([escape(cell.replace("_", " ")) for cell in row] for row in rows),
                 numbers)


def verdict(claim: Claim) -> str:
    kind = claim.result["verdict"]
    return f'<b class="verdict {kind}">{words.SIGNS[kind]} {words.verdict(claim)}</b>'


def drawn(figure: Figure) -> str:
    """A figure that the script, where it runs, can enlarge."""
    return f'<div class="figure">{svg.draw(figure)}</div>'


def figures(some: list[Figure]) -> str:
    return f'<div class="figures">{"".join(map(drawn, some))}</div>' if some else ""


def folded(summary: str, inner: str) -> str:
    return f"<details><summary>{summary}</summary>{inner}</details>" if inner else ""


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>"
                            for key, value in rows) + "</dl>"


def whole(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style></head><body>
<main>
{body}
</main>
<script>{SCRIPT}</script>
</body></html>
"""
