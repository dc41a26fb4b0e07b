"""Small figures of a claim's saboteurs, all on one axis: the judged numbers with and without the
fault, and a square for each attack."""

import math
from dataclasses import dataclass
from html import escape

from .. import words
from ..evidence import Claim, Saboteur, Value, judged
from .figure import Axis, ticks

WIDTH, EDGE, STRIP, SQUARE = 220, 8, 44, 9
BESIDE_MAX = 60  # attacks without a fault that are drawn: more would be a bar of dots


@dataclass
class Scale:
    """The common axis of a claim's saboteurs."""

    low: float
    high: float
    log: bool

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, low))
        return EDGE + (WIDTH - 2 * EDGE) * min(max((value - low) / (high - low), 0.0), 1.0)


def clean(claim: Claim) -> list[Value]:
    """The judged numbers without a fault."""
    return judged({"effects": claim.effects, "measures": claim.measures})


def scale_of(claim: Claim) -> Scale | None:
    """None if the claim has no numbers under a fault, or no finite ones."""
    values = [number for one in claim.saboteurs for value in one.values for number in value]
    if not values:
        return None
    values += [number for value in clean(claim) for number in value]
    values = [number for number in (*values, float(claim.result["threshold"]))
              if math.isfinite(number)]
    positive = [number for number in values if number > 0]
    if "error" in claim.result["unit"] and positive and max(positive) > 30 * min(positive):
        return Scale(min(positive) / 1.5, max(positive) * 1.5, True)
    room = (max(values) - min(values)) * 0.06 or 1.0
    return Scale(min(values) - room, max(values) + room, False)


def reach(values: list[Value]) -> str:
    return f"{min(low for _, low, _ in values):.4g} to {max(high for *_, high in values):.4g}"


def sentence(claim: Claim, saboteur: Saboteur) -> str:
    """The text alternative."""
    noticed = [name for name, found in saboteur.attacks.items() if found]
    text = (f"{saboteur.name}: expected {saboteur.must or 'unknown'}, observed "
            f"{saboteur.verdict.replace('_', ' ') or 'unknown'}; {len(noticed)} of "
            f"{words.counted(len(saboteur.attacks), 'attacks')} that ran detected it")
    if noticed:
        text += f": {', '.join(noticed)}"
    if saboteur.values:
        text += f"; {reach(saboteur.values)} {claim.result['unit']} with the fault"
    if saboteur.values and clean(claim):
        text += f", {reach(clean(claim))} without it"
    return text


def dots(values: list[Value], scale: Scale, y: int, kind: str) -> list[str]:
    parts = []
    for median, low, high in values[:BESIDE_MAX]:
        if scale.at(high) - scale.at(low) >= 1:
            parts.append(f'<path class="{kind} span" d="M{scale.at(low):.1f} {y}'
                         f'H{scale.at(high):.1f}"/>')
        parts.append(f'<circle class="{kind}" cx="{scale.at(median):.1f}" cy="{y}" r="3"/>')
    return parts


def strip(claim: Claim, saboteur: Saboteur, scale: Scale) -> list[str]:
    """The axis with the threshold; above the numbers without the fault, below those with it."""
    edge = scale.at(float(claim.result["threshold"]))
    past = (0.0, edge) if claim.result["direction"] == "above" else (edge, float(WIDTH))
    parts = [f'<rect class="past" x="{past[0]:.1f}" y="0" width="{past[1] - past[0]:.1f}" '
             f'height="{STRIP - 12}"/>', f'<path class="edge" d="M{edge:.1f} 0V{STRIP - 12}"/>']
    end = 0.0
    for value, text in ticks(Axis(log=scale.log), scale.low, scale.high):
        at, half = scale.at(value), 2.6 * len(text)
        if at - half >= end and at + half <= WIDTH:
            parts.append(f'<text x="{at:.1f}" y="{STRIP - 2}" text-anchor="middle">{text}</text>')
            end = at + half + 4
    return [*parts, *dots(clean(claim), scale, 9, "without"),
            *dots(saboteur.values, scale, 23, "with")]


def squares(attacks: list[str], saboteur: Saboteur, top: int) -> list[str]:
    parts = []
    for at, name in enumerate(attacks):
        found = saboteur.attacks.get(name)
        kind, said = (("unrun", "not run") if found is None else
                      ("noticed", "detected the fault") if found else ("blind", "found nothing"))
        parts.append(f'<rect class="{kind}" x="{EDGE + at * (SQUARE + 4)}" y="{top}" '
                     f'width="{SQUARE}" height="{SQUARE}"><title>{escape(name)}: {said}</title>'
                     "</rect>")
    return parts


def draw(claim: Claim, saboteur: Saboteur, attacks: list[str], scale: Scale | None) -> str:
    """An <svg> with a text alternative."""
    top = STRIP + 4 if scale is not None else 2
    text = escape(sentence(claim, saboteur))
    parts = strip(claim, saboteur, scale) if scale is not None else []
    return (f'<svg class="small" viewBox="0 0 {WIDTH} {top + SQUARE + 2}" role="img" '
            f'aria-label="{text}"><title>{text}</title>'
            f'{"".join(parts + squares(attacks, saboteur, top))}</svg>')


def attacks_of(claim: Claim) -> list[str]:
    """Each attack once, those of the claim first."""
    names = [str(attack["name"]) for attack in claim.attacks]
    return list(dict.fromkeys([*names, *(name for one in claim.saboteurs for name in one.attacks)]))


def legend(claim: Claim, attacks: list[str], scale: Scale | None) -> str:
    text = "Squares, from left: " + "; ".join(name.replace("_", " ") for name in attacks) + \
        ". Filled: it detected the fault. Empty: it found nothing. Dotted: not run."
    if scale is not None:
        text = (f"Dots: effects in {claim.result['unit']}, without the fault (above) and with it "
                f"(below), {'logarithmic, ' * scale.log}beside the threshold of "
                f"{claim.result['threshold']:g}. ") + text
    return text
