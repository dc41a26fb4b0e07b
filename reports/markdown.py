"""The report as Markdown."""

from collections.abc import Iterable, Sequence

from reports import words
from reports.evidence import Claim, Evidence


def escape(text: str) -> str:
    for character in "\\|<>*_`[]":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(escape(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def claim_section(claim: Claim) -> list[str]:
    lines = [f"## {claim.id}: {escape(claim.result['title'])}", "",
             f"**{words.verdict(claim)}** {escape(claim.result['reason'] or '')}".rstrip(), ""]
    for key, heading in words.PARTS:
        if key in claim.words:
            lines.append(f"* *{heading}*: {escape(claim.words[key])}")
    lines += [f"* *Source*: {escape(claim.words['source'])}", ""]
    if claim.examples:
        lines += ["Counterexamples:", "", *(f"* {escape(text)}" for text in claim.examples), ""]
    if claim.attacks:
        lines += [table(("attack", "ended", "samples", "violations", "seconds"),
                        ((a["name"], a["ending"], str(a["samples"]), str(a["violations"]),
                          f"{a['duration_s']:.2f}") for a in claim.attacks)), ""]
    if claim.effects:
        lines += [table(words.EFFECT_HEADINGS, map(words.effect_row, claim.effects)), ""]
    if claim.measures:
        lines += [table(words.MEASURE_HEADINGS, map(words.measure_row, claim.measures)), ""]
        lines += [f"![{w.name}](plots/{w.file_name})" for w in claim.walks]
        lines.append("")
    if claim.notes:
        lines += [*(f"* {escape(text)}" for text in claim.notes), ""]
    if claim.series:
        lines += [table(words.SERIES_HEADINGS, map(words.series_row, claim.series)), ""]
        lines += [f"![{s.name}](plots/{s.file_name})" for s in claim.series]
        lines.append("")
    return lines


def render(evidence: Evidence) -> str:
    lines = [f"# Tollens: {words.headline(evidence)}", ""]
    if words.is_soft(evidence):
        lines += [words.SOFT_NOTE, ""]
    lines += [table(words.CLAIM_HEADINGS, map(words.claim_row, evidence.claims)), ""]
    for claim in evidence.claims:
        if claim.attacks or claim.examples:
            lines += claim_section(claim)
    lines += ["## Machine", "", table(("", ""), words.machine_rows(evidence))]
    return "\n".join(lines) + "\n"
