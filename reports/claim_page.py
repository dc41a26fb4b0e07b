"""The section of one claim in a report."""

import posixpath
from collections.abc import Iterable, Sequence
from html import escape

from . import controls, filters, limits, words
from .drawing import drawn
from .drawing import saboteur_figures as small
from .evidence import Claim, folder_of
from .parts import definitions, figures, folded, row, stacked, table, verdict
from .raw import Raw

NOTES_MAX = 4  # what more there is, is folded


def saboteur_table(claim: Claim, raw: Raw) -> str:
    labels = ["", *words.SABOTEUR_HEADINGS[1:]]
    rows = []
    for saboteur in claim.saboteurs:
        cells = [escape(cell) for cell in words.saboteur_row(saboteur)]
        name = raw.link(f"{claim.id}/sabotage/{saboteur.name}/verdict.json", cells[0])
        rows.append(row(labels, [f"<b>{name}</b>", *cells[1:]], filters.of_saboteur(saboteur)))
    return stacked("saboteurs", words.SABOTEUR_HEADINGS, rows)


def saboteur_figures(claim: Claim) -> str:
    """One for each saboteur, side by side."""
    attacks, scale = small.attacks_of(claim), small.scale_of(claim)
    parts = []
    for one in claim.saboteurs:
        right = {True: ("as expected", "survived"), False: ("not as expected", "falsified"),
                 None: (words.saboteur_row(one)[2], "not_tested")}[one.right]
        sign = {True: "✓", False: "✗", None: "?"}[one.right]
        name = escape(one.name).replace("_", "_<wbr>")  # names are wider than a figure
        parts.append(f"<figure{filters.of_saboteur(one)}><figcaption><b>{name}</b> "
                     f'<span class="{right[1]}">{sign} {right[0]}</span></figcaption>'
                     f"{small.draw(claim, one, attacks, scale)}</figure>")
    return (f'<div class="multiples">{"".join(parts)}</div>'
            f'<p class="note">{escape(small.legend(claim, attacks, scale))}</p>')


def linked(rows: Iterable[Sequence[str]], names: Iterable[str], raw: Raw) -> list[list[str]]:
    """Rows of plain text as HTML, in which the first cell links to a file of the claim."""
    found = [[escape(cell.replace("_", " ")) for cell in row] for row in rows]
    for row, name in zip(found, names):
        row[0] = raw.link(posixpath.normpath(name), row[0])
    return found


def data_tables(claim: Claim, raw: Raw) -> list[str]:
    """What the attacks recorded, folded; names link to the files."""
    own = claim.id
    return [
        folded(words.counted(len(claim.attacks), "attacks"), table(words.ATTACK_HEADINGS, linked(
            map(words.attack_row, claim.attacks),
            (f"{own}/{folder_of(one)}/attacks/{one['name']}.json" for one in claim.attacks), raw),
            2)),
        claim.effects and folded(words.counted(len(claim.effects), "comparisons"), table(
            words.EFFECT_HEADINGS, linked(
                map(words.effect_row, claim.effects),
                (f"{own}/{one['folder']}/{one['attack']}.{one['name']}.csv"
                 for one in claim.effects), raw), 3)) or "",
        claim.measures and folded(words.counted(len(claim.measures), "measurements"), table(
            words.MEASURE_HEADINGS, linked(
                map(words.measure_row, claim.measures),
                (f"{own}/{one['record'].replace('/', '/attacks/')}.json"
                 for one in claim.measures), raw), 3)) or "",
        claim.series and folded(f"{len(claim.series)} latency series", table(
            words.SERIES_HEADINGS, linked(
                map(words.series_row, claim.series),
                (f"{own}/{one.attack}.hlog" for one in claim.series), raw), 2)) or ""]


def claim_section(claim: Claim, mark: str, raw: Raw) -> str:
    shown = drawn.of_claim(claim)
    parts = [f'<section{filters.of_claim(claim)} aria-labelledby="{mark}{claim.id}">'
             f'<h2 id="{mark}{claim.id}">{claim.id}: {escape(claim.result["title"])} '
             f"({verdict(claim)})</h2>"]
    if claim.result["reason"] and claim.result["reason"] not in claim.examples:
        parts.append(f"<p>{escape(claim.result['reason'])}</p>")
    if claim.examples:
        parts.append('<h3>Counterexamples</h3><ul class="examples">' +
                     "".join(f"<li>{escape(text)}</li>" for text in claim.examples) + "</ul>")
    parts.append(definitions([*((heading, claim.words[key]) for key, heading in words.PARTS
                                if key in claim.words), ("Source", claim.words["source"])]))
    if not claim.attacks:
        parts.append('<p class="note">This run has no attack on this claim.</p></section>')
        return "\n".join(parts)
    if claim.saboteurs:
        parts.append("<h3>Saboteurs</h3>" + saboteur_figures(claim) + saboteur_table(claim, raw))
    if limits.sentences(claim):
        parts.append("<h3>Detection limits</h3><ul>" + "".join(
            f"<li>{claim.id} {escape(text)}</li>" for text in limits.sentences(claim)) + "</ul>")
    if shown.measures or shown.tables:
        parts.append("<h3>Measurements</h3>" + figures([*shown.measures, *shown.tables]))
    if shown.blocks:
        parts.append("<h3>Blocks over time, with the control</h3>" + figures(shown.blocks))
    if shown.series:
        parts.append("<h3>Call latency</h3>" + figures(shown.series))
    notes = [f"<li>{escape(text)}</li>" for text in controls.notes(claim)]
    if notes:
        parts.append(f'<ul>{"".join(notes[:NOTES_MAX])}</ul>')
        parts.append(folded(words.counted(len(notes[NOTES_MAX:]), "more notes"),
                            f'<ul>{"".join(notes[NOTES_MAX:])}</ul>' if notes[NOTES_MAX:] else ""))
    parts += data_tables(claim, raw)
    parts.append(folded(words.counted(len(shown.beside), "figures") + " of values that are only "
                        "recorded, not used for the verdict", figures(shown.beside)))
    if claim.tables.unknown:
        parts.append('<p class="note">Tables without a figure: ' +
                     escape(", ".join(claim.tables.unknown)) + "</p>")
    parts.append(raw.listed(raw.of_claim(claim.id)) + "</section>")
    return "\n".join(parts)
