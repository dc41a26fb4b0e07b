"""The report as one HTML page that needs no other file: pictures and style lie in it."""

import base64
import pathlib
from collections.abc import Iterable, Sequence
from html import escape

from reports import words
from reports.evidence import Claim, Evidence

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --faint: #59636e; --paper: #fff; --line: #d1d9e0;
        --soft: #f6f8fa; --good: #1a7f37; --bad: #cf222e; --open: #9a6700; --none: #59636e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --faint: #9198a1; --paper: #0d1117; --line: #3d444d; --soft: #151b23;
          --good: #3fb950; --bad: #f85149; --open: #d29922; --none: #9198a1; }
  img { filter: invert(.9) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 1100px; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p.note { color: var(--faint); margin: .2rem 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid var(--line);
         vertical-align: top; }
th { color: var(--faint); font-weight: 500; white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
a { color: inherit; } b.verdict { white-space: nowrap; }
.survived { color: var(--good); } .falsified { color: var(--bad); }
.inconclusive { color: var(--open); } .not_tested { color: var(--none); font-weight: 400; }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .15rem .8rem; margin: .5rem 0; }
dt { color: var(--faint); } dd { margin: 0; }
ul.examples { background: var(--soft); border-left: 3px solid var(--bad); padding: .6rem 1.8rem;
              overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); gap: .8rem; }
.plots img { width: 100%; border: 1px solid var(--line); border-radius: 4px; }
details > summary { cursor: pointer; color: var(--faint); }
"""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 99) -> str:
    """Cells are HTML; those from column `numbers` on are set as numbers."""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{cell}</td>' if i >= numbers else f"<td>{cell}</td>"
                         for i, cell in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def verdict(claim: Claim) -> str:
    return f'<b class="verdict {claim.result["verdict"]}">{words.verdict(claim)}</b>'


def claim_row(claim: Claim) -> tuple[str, ...]:
    cells = [escape(cell) for cell in words.claim_row(claim)]
    if claim.attacks:
        cells[0] = f'<a href="#{claim.id}">{cells[0]}</a>'
    cells[2] = verdict(claim)
    if claim.result["verdict"] == "not_tested":
        cells[3] = escape(claim.result["reason"] or "")
    return tuple(cells)


def picture(path: pathlib.Path, text: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{data}">'


def claim_section(claim: Claim, plots: pathlib.Path) -> str:
    parts = [f'<h2 id="{claim.id}">{claim.id}: {escape(claim.result["title"])} '
             f"({verdict(claim)})</h2>"]
    if claim.result["reason"]:
        parts.append(f"<p>{escape(claim.result['reason'])}</p>")
    if claim.examples:
        parts.append('<ul class="examples">' +
                     "".join(f"<li>{escape(text)}</li>" for text in claim.examples) + "</ul>")
    known = [(heading, claim.words[key]) for key, heading in words.PARTS if key in claim.words]
    known.append(("Source", claim.words["source"]))
    parts.append("<dl>" + "".join(f"<dt>{heading}</dt><dd>{escape(text)}</dd>"
                                  for heading, text in known) + "</dl>")
    parts.append(table(("attack", "ended", "samples", "violations", "seconds"),
                       ((escape(a["name"].replace("_", " ")), a["ending"], str(a["samples"]),
                         str(a["violations"]), f"{a['duration_s']:.2f}")
                        for a in claim.attacks), 2))
    if claim.effects:
        cells = (tuple(escape(cell.replace("_", " ")) for cell in words.effect_row(effect))
                 for effect in claim.effects)
        parts.append(table(words.EFFECT_HEADINGS, cells, 3))
    if claim.measures:
        cells = (tuple(escape(cell.replace("_", " ")) for cell in words.measure_row(measure))
                 for measure in claim.measures)
        pictures = "".join(picture(plots / w.file_name, f"{w.name} in {w.attack}")
                           for w in claim.walks)
        parts.append(table(words.MEASURE_HEADINGS, cells, 3) +
                     f'<div class="plots">{pictures}</div>')
    if claim.notes:
        parts.append("<ul>" + "".join(f"<li>{escape(text)}</li>" for text in claim.notes) + "</ul>")
    if claim.series:
        rows = (tuple(escape(cell.replace("_", " ")) for cell in words.series_row(s))
                for s in claim.series)
        pictures = "".join(picture(plots / s.file_name, f"{s.name} in {s.attack}")
                           for s in claim.series if s.histogram.total > 0)
        parts.append(table(words.SERIES_HEADINGS, rows, 2) + f'<div class="plots">{pictures}</div>')
    return "\n".join(parts)


def render(evidence: Evidence, plots: pathlib.Path) -> str:
    note = f'<p class="note">{words.SOFT_NOTE}</p>' if words.is_soft(evidence) else ""
    sections = "\n".join(claim_section(claim, plots) for claim in evidence.claims if claim.attacks)
    machine = "".join(f"<dt>{key}</dt><dd>{escape(str(value))}</dd>"
                      for key, value in words.machine_rows(evidence))
    device = escape(evidence.results["device"]["name"])
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tollens: {words.headline(evidence)} on {device}</title>
<style>{STYLE}</style></head><body>
<h1>Tollens: {words.headline(evidence)}</h1>
<p>{evidence.results["mode"].capitalize()} run on {device}.</p>
{note}
{table(words.CLAIM_HEADINGS, map(claim_row, evidence.claims))}
{sections}
<h2>Machine</h2>
<dl>{machine}</dl>
</body></html>
"""
