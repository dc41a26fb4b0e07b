"""The report as one HTML page, which needs no other file, no network and no script."""

from collections.abc import Iterable, Sequence
from html import escape

from . import controls, drawn, effect_axis, limits, svg, words
from .evidence import Claim, Evidence
from .figure import Figure
from .style import STYLE


def row(headings: Sequence[str], cells: Iterable[str]) -> str:
    """A row of a table; on a phone the table is a list, in which each cell has its label."""
    return "<tr>" + "".join(
        f'<td data-label="{heading}">{cell}</td>' if heading and cell else f"<td>{cell}</td>"
        for heading, cell in zip(headings, cells)) + "</tr>"


def stacked(kind: str, headings: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    return f'<table class="stacked {kind}"><tr>{head}</tr>{"".join(rows)}</table>'


def table(headings: Sequence[str], rows: Iterable[Iterable[str]], numbers: int = 99) -> str:
    """Cells are HTML; columns from `numbers` on are right-aligned."""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{cell}</td>' if i >= numbers else f"<td>{cell}</td>"
                         for i, cell in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 99) -> str:
    """Cells are plain text, which is escaped."""
    return table(headings, ([escape(cell.replace("_", " ")) for cell in row] for row in rows),
                 numbers)


def verdict(claim: Claim) -> str:
    kind = claim.result["verdict"]
    return f'<b class="verdict {kind}">{words.SIGNS[kind]} {words.verdict(claim)}</b>'


def verdict_table(evidence: Evidence, mark: str) -> str:
    rows = []
    for claim in evidence.claims:
        cells = [escape(cell) for cell in words.claim_row(claim)]
        cells[0] = f'<a href="#{mark}{claim.id}"><b>{cells[0]}</b></a>'
        cells[2] = verdict(claim)
        cells[3] += effect_axis.draw(claim.result)
        labels = ["", "", "", "", *words.CLAIM_HEADINGS[4:]]
        rows.append(row(labels, cells))
    return stacked("verdicts", words.CLAIM_HEADINGS, rows)


def saboteur_table(claim: Claim) -> str:
    labels = ["", *words.SABOTEUR_HEADINGS[1:]]
    rows = []
    for saboteur in claim.saboteurs:
        cells = [escape(cell) for cell in words.saboteur_row(saboteur)]
        rows.append(row(labels, [f"<b>{cells[0]}</b>", *cells[1:]]))
    return stacked("saboteurs", words.SABOTEUR_HEADINGS, rows)


def figures(some: list[Figure]) -> str:
    return f'<div class="figures">{"".join(map(svg.draw, some))}</div>' if some else ""


def folded(summary: str, inner: str) -> str:
    return f"<details><summary>{summary}</summary>{inner}</details>" if inner else ""


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>"
                            for key, value in rows) + "</dl>"


def claim_section(claim: Claim, mark: str) -> str:
    shown = drawn.of_claim(claim)
    parts = [f'<h2 id="{mark}{claim.id}">{claim.id}: {escape(claim.result["title"])} '
             f"({verdict(claim)})</h2>"]
    if claim.result["reason"] and claim.result["reason"] not in claim.examples:
        parts.append(f"<p>{escape(claim.result['reason'])}</p>")
    if claim.examples:
        parts.append('<h3>Counterexamples</h3><ul class="examples">' +
                     "".join(f"<li>{escape(text)}</li>" for text in claim.examples) + "</ul>")
    parts.append(definitions([*((heading, claim.words[key]) for key, heading in words.PARTS
                                if key in claim.words), ("Source", claim.words["source"])]))
    if not claim.attacks:
        parts.append('<p class="note">This run has no attack on this claim.</p>')
        return "\n".join(parts)
    if claim.saboteurs:
        parts.append("<h3>Saboteurs</h3>" + saboteur_table(claim))
    if limits.sentences(claim):
        parts.append("<h3>Detection limits</h3><ul>" + "".join(
            f"<li>{claim.id} {escape(text)}</li>" for text in limits.sentences(claim)) + "</ul>")
    if shown.measures or shown.tables:
        parts.append("<h3>Measurements</h3>" + figures([*shown.measures, *shown.tables]))
    if shown.blocks:
        parts.append("<h3>Blocks over time, with the control</h3>" + figures(shown.blocks))
    if shown.series:
        parts.append("<h3>Call latency</h3>" + figures(shown.series))
    if controls.notes(claim):
        items = "".join(f"<li>{escape(text)}</li>" for text in controls.notes(claim))
        parts.append(f"<ul>{items}</ul>")
    parts.append(folded(words.counted(len(claim.attacks), "attacks"), plain_table(
        words.ATTACK_HEADINGS, map(words.attack_row, claim.attacks), 2)))
    if claim.effects:
        parts.append(folded(words.counted(len(claim.effects), "comparisons"), plain_table(
            words.EFFECT_HEADINGS, map(words.effect_row, claim.effects), 3)))
    if claim.measures:
        parts.append(folded(words.counted(len(claim.measures), "measurements"), plain_table(
            words.MEASURE_HEADINGS, map(words.measure_row, claim.measures), 3)))
    if claim.series:
        parts.append(folded(f"{len(claim.series)} latency series", plain_table(
            words.SERIES_HEADINGS, map(words.series_row, claim.series), 2)))
    parts.append(folded(words.counted(len(shown.beside), "figures") + " of values that are only "
                        "recorded, not used for the verdict", figures(shown.beside)))
    if claim.tables.unknown:
        parts.append('<p class="note">Tables without a figure: ' +
                     escape(", ".join(claim.tables.unknown)) + "</p>")
    return "\n".join(parts)


def run_part(evidence: Evidence, mark: str) -> str:
    notes = "".join(f'<p class="note">{escape(text)}</p>' for text in words.warnings(evidence))
    sections = "\n".join(claim_section(claim, mark) for claim in evidence.claims)
    return f"""<p>{escape(words.where(evidence))}.</p>
{notes}
{verdict_table(evidence, mark)}
<p class="note">{escape(words.READING)}</p>
{sections}
<h2 id="{mark}machine">Environment</h2>
{definitions(words.machine_rows(evidence))}
<h2 id="{mark}again">Run it again</h2>
<pre>{escape(words.reproduce(evidence))}</pre>"""


def whole(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style></head><body>
{body}
</body></html>
"""


def render(runs: Sequence[Evidence], appendix: str = "") -> str:
    """One run, or several one after another, and then the appendix, which is HTML."""
    if len(runs) == 1:
        title = f"Tollens: {words.headline(runs[0])}"
        return whole(f"{title} on {runs[0].results['device']['name']}",
                     f"<h1>{escape(title)}</h1>\n{run_part(runs[0], '')}\n{appendix}")
    parts = [f"<h1>Tollens: {len(runs)} runs</h1>", "<ul>"]
    for number, run in enumerate(runs, 1):
        parts.append(f'<li><a href="#run{number}">{escape(words.headline(run))}</a>: '
                     f"{escape(words.where(run))}</li>")
    parts.append("</ul>")
    for number, run in enumerate(runs, 1):
        parts.append(f'<h1 class="run" id="run{number}">{escape(words.headline(run))}</h1>')
        parts.append(run_part(run, f"run{number}-"))
    return whole(f"Tollens: {len(runs)} runs", "\n".join([*parts, appendix]))
