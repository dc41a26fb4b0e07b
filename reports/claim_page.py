"""The section of one claim in a report."""

from html import escape

from . import controls, drawn, filters, limits, words
from . import saboteur_figures as small
from .evidence import Claim
from .parts import definitions, figures, folded, plain_table, row, stacked, verdict


def saboteur_table(claim: Claim) -> str:
    labels = ["", *words.SABOTEUR_HEADINGS[1:]]
    rows = []
    for saboteur in claim.saboteurs:
        cells = [escape(cell) for cell in words.saboteur_row(saboteur)]
        rows.append(row(labels, [f"<b>{cells[0]}</b>", *cells[1:]], filters.of_saboteur(saboteur)))
    return stacked("saboteurs", words.SABOTEUR_HEADINGS, rows)


def saboteur_figures(claim: Claim) -> str:
    """One for each saboteur, side by side."""
    attacks, scale = small.attacks_of(claim), small.scale_of(claim)
    parts = []
    for one in claim.saboteurs:
        right = {True: ("as expected", "survived"), False: ("not as expected", "falsified"),
                 None: (one.verdict.replace("_", " "), "not_tested")}[one.right]
        sign = {True: "✓", False: "✗", None: "?"}[one.right]
        parts.append(f"<figure{filters.of_saboteur(one)}><figcaption><b>{escape(one.name)}</b> "
                     f'<span class="{right[1]}">{sign} {right[0]}</span></figcaption>'
                     f"{small.draw(claim, one, attacks, scale)}</figure>")
    return (f'<div class="multiples">{"".join(parts)}</div>'
            f'<p class="note">{escape(small.legend(claim, attacks, scale))}</p>')


def claim_section(claim: Claim, mark: str) -> str:
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
        parts.append("<h3>Saboteurs</h3>" + saboteur_figures(claim) + saboteur_table(claim))
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
    parts.append("</section>")
    return "\n".join(parts)
