"""The report as Markdown."""

from collections.abc import Callable, Iterable, Sequence

from . import controls, limits, summary, words
from .drawing import drawn
from .evidence import Claim, Evidence
from .drawing.figure import Figure
from .history import History


def escape(text: str) -> str:
    for character in "\\|<>*_`[]":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(escape(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def pictures(some: list[Figure], prefix: str) -> list[str]:
    return [*(f"![{escape(f.alt)}](plots/{prefix}{f.name}.png)" for f in some), ""] if some else []


def claim_section(claim: Claim, prefix: str) -> list[str]:
    lines = [f"## {claim.id}: {escape(claim.result['title'])}", "",
             f"**{words.verdict(claim)}** {escape(claim.result['reason'] or '')}".rstrip(), ""]
    for key, heading in words.PARTS:
        if key in claim.words:
            lines.append(f"* *{heading}*: {escape(claim.words[key])}")
    lines += [f"* *Source*: {escape(claim.words['source'])}", ""]
    if not claim.attacks:
        return [*lines, "This run has no attack on this claim.", ""]
    shown = drawn.of_claim(claim)
    if claim.examples:
        lines += ["Counterexamples:", "", *(f"* {escape(text)}" for text in claim.examples), ""]
    if controls.notes(claim):
        lines += [*(f"* {escape(text)}" for text in controls.notes(claim)), ""]
    if limits.sentences(claim):
        lines += ["Detection limits:", "",
                  *(f"* {claim.id} {escape(text)}" for text in limits.sentences(claim)), ""]
    kinds: list[tuple[Sequence[str], Callable[..., tuple[str, ...]], list]] = [  # type: ignore
        (words.SABOTEUR_HEADINGS, words.saboteur_row, claim.saboteurs),
        (words.ATTACK_HEADINGS, words.attack_row, claim.attacks),
        (words.EFFECT_HEADINGS, words.effect_row, claim.effects),
        (words.MEASURE_HEADINGS, words.measure_row, claim.measures),
        (words.SERIES_HEADINGS, words.series_row, claim.series)]
    for headings, row, found in kinds:
        if found:
            lines += [table(headings, map(row, found)), ""]
    lines += pictures(shown.all(), prefix)
    return lines


def verdict_table(evidence: Evidence, history: History) -> str:
    headings, rows = list(words.CLAIM_HEADINGS), [list(words.claim_row(c)) for c in evidence.claims]
    if history.baseline is not None:
        headings.insert(4, words.TREND_HEADING)
        for row, (word, _) in zip(rows, summary.changes(evidence, history).values()):
            row.insert(4, word)
    return table(headings, rows)


def run_part(evidence: Evidence, history: History, prefix: str) -> list[str]:
    lines = [f"# {summary.sentence(evidence)}", "",
             f"{escape(words.where(evidence))}. {words.headline(evidence).capitalize()}.", ""]
    if history.baseline is not None:
        lines += [escape(summary.against(evidence, history)), ""]
    for text in words.warnings(evidence):
        lines += [escape(text), ""]
    lines += [verdict_table(evidence, history), "",
              escape(words.READING), ""]
    for claim in evidence.claims:
        lines += claim_section(claim, prefix)
    lines += ["## Environment", "", table(("", ""), words.machine_rows(evidence)), "",
              "## Run it again", "", f"    {words.reproduce(evidence)}"]
    return lines


def render(runs: Sequence[Evidence], appendix: str = "",
           histories: Sequence[History] | None = None) -> str:
    """One run, or several one after another; names of pictures then begin with the run's number."""
    lines: list[str] = []
    histories = histories or [History() for _ in runs]
    for number, (run, history) in enumerate(zip(runs, histories), 1):
        lines += [*run_part(run, history, f"run{number}_" if len(runs) > 1 else ""), ""]
    return "\n".join(lines) + appendix
