"""The report as one HTML page, which needs no other file and no network. Its script adds the zoom
of figures and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from . import filters, summary, words
from .drawing import effect_axis
from .claim_page import claim_section
from .evidence import Evidence
from .history import History
from .parts import BRAND, definitions, row, stacked, verdict, whole
from .raw import Raw


@dataclass
class Context:
    """What a report says of a run beside its own results."""

    history: History = field(default_factory=History)
    raw: Raw = field(default_factory=Raw)


def verdict_table(evidence: Evidence, history: History, mark: str) -> str:
    headings = ["", "claim", "verdict", "effect", words.TREND_HEADING, "severity", "samples",
                "reason"]
    unused = {words.TREND_HEADING} if history.baseline is None else set()
    if not any(claim.result["reason"] for claim in evidence.claims):
        unused.add("reason")
    rows = []
    for claim in evidence.claims:
        name, title, _, effect, survives, severity, samples, why = map(escape,
                                                                       words.claim_row(claim))
        cells = dict(zip(headings, (
            f'<a href="#{mark}{claim.id}"><b>{name}</b></a>', title, verdict(claim),
            f"{effect}{effect_axis.draw(claim.result)}<small>survives if {survives}</small>",
            summary.trend(claim, history) if history.baseline is not None else "", severity,
            samples, why)))
        shown = [heading for heading in headings if heading not in unused]
        rows.append(row(["", "", "", "", *shown[4:]], [cells[heading] for heading in shown],
                        filters.of_claim(claim)))
    return stacked("verdicts", shown, rows)


def run_part(evidence: Evidence, context: Context, mark: str, filtered: str = "") -> str:
    history, raw = context.history, context.raw
    notes = "".join(f'<p class="note">{escape(text)}</p>' for text in words.warnings(evidence))
    sections = "\n".join(claim_section(claim, mark, raw) for claim in evidence.claims)
    return f"""<p>{escape(words.where(evidence))}.</p>
{summary.render(evidence, history, mark)}
{notes}
{filtered}
{filters.counted(evidence, verdict_table(evidence, history, mark))}
<p class="note">{escape(words.READING)}</p>
{sections}
<h2 id="{mark}machine">Environment</h2>
{definitions(words.machine_rows(evidence))}
{raw.listed(raw.beside(claim.id for claim in evidence.claims))}
<h2 id="{mark}again">Run it again</h2>
<pre>{escape(words.reproduce(evidence))}</pre>"""


def render(runs: Sequence[Evidence], appendix: str = "",
           contexts: Sequence[Context] | None = None) -> str:
    """One run, or several one after another, and then the appendix, which is HTML."""
    contexts = contexts or [Context() for _ in runs]
    if len(runs) == 1:
        title = f"Tollens: {words.headline(runs[0])} on {runs[0].results['device']['name']}"
        return whole(title, f"{BRAND}<h1>{escape(summary.sentence(runs[0]))}</h1>\n"
                     f"{run_part(runs[0], contexts[0], '', filters.form(runs))}\n{appendix}")
    parts = [f"{BRAND}<h1>{len(runs)} runs</h1>", "<ul>"]
    for number, run in enumerate(runs, 1):
        parts.append(f'<li><a href="#run{number}">{escape(summary.sentence(run))}</a>: '
                     f"{escape(words.where(run))}</li>")
    parts += ["</ul>", filters.form(runs)]
    for number, run in enumerate(runs, 1):
        parts.append(f'<h2 class="run" id="run{number}">{escape(summary.sentence(run))}</h2>')
        parts.append(run_part(run, contexts[number - 1], f"run{number}-"))
    return whole(f"Tollens: {len(runs)} runs", "\n".join([*parts, appendix]))
