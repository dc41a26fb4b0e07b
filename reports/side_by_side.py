"""Two runs side by side: for each claim the verdict, the effect and the figures of both, on the
same axes, so that a visible difference is one of the data."""

import dataclasses
import pathlib
from html import escape

from . import change, parts, raw, words
from .drawing import drawn, effect_axis
from .archive import is_folder
from .evidence import Claim, Evidence
from .drawing.figure import Figure, span

SIDES = ("first", "last")


def same_axes(one: Figure, other: Figure) -> tuple[Figure, Figure]:
    """Both figures with axes that hold the data of either."""
    found = []
    for figure in (one, other):
        axes = {}
        for axis in ("x", "y"):
            ends = [span(each, axis) for each in (one, other)]
            own = getattr(figure, axis)
            log = one.x.log and other.x.log if axis == "x" else one.y.log and other.y.log
            axes[axis] = dataclasses.replace(own, log=log, low=min(low for low, _ in ends),
                                             high=max(high for _, high in ends))
        found.append(dataclasses.replace(figure, **axes))
    return found[0], found[1]


def pairs(first: Claim | None, last: Claim | None) -> list[tuple[Figure | None, Figure | None]]:
    """The figures of both runs by their names; a figure of one run alone has no partner."""
    before, now = ({figure.name: figure for figure in drawn.of_claim(claim).all()} if claim else {}
                   for claim in (first, last))
    found: list[tuple[Figure | None, Figure | None]] = []
    for name in dict.fromkeys([*before, *now]):
        one, other = before.get(name), now.get(name)
        found.append(same_axes(one, other) if one and other else (one, other))
    return found


def effect(claim: Claim | None, other: Claim | None) -> str:
    """Verdict and effect, on an axis that both runs share."""
    if claim is None:
        return '<p class="note">This run does not have the claim.</p>'
    beside = [other.result] if other is not None else []
    severity = words.severity(claim)
    reason = claim.result["reason"]
    return (f"<p>{parts.verdict(claim)} {escape(words.effect(claim))}"
            f"{effect_axis.draw(claim.result, beside)}</p>"
            + (f'<p class="note">severity {severity}</p>' if severity else "")
            + (f"<p>{escape(reason)}</p>" if reason else ""))


def saboteurs(first: Claim | None, last: Claim | None) -> str:
    """A table of those saboteurs that the runs judged differently, or that one of them lacks."""
    both = [{one.name: (one.verdict or "unknown").replace("_", " ") for one in claim.saboteurs}
            if claim else {} for claim in (first, last)]
    names = [name for name in dict.fromkeys([*both[0], *both[1]])
             if both[0].get(name) != both[1].get(name)]
    if not names or not all(both):
        return ""
    return parts.plain_table(("saboteur", *SIDES), (
        (name, *(side.get(name, "did not run") for side in both)) for name in names))


def section(name: str, runs: tuple[Evidence, Evidence]) -> str:
    first, last = (run.claim(name) for run in runs)
    claim = last or first
    assert claim is not None
    word, why = change.of_claim(first, last)
    kind = "worse" if word == "WORSE" else "changed"
    found = pairs(first, last)
    shown = "".join(parts.drawn(one) if one else "<div></div>" for pair in found for one in pair)
    counts = [words.counted(sum(pair[side] is not None for pair in found), "figures")
              for side in (0, 1)]
    count = counts[0] if counts[0] == counts[1] else " and ".join(counts)
    return (f'<section aria-labelledby="{name}"><h2 id="{name}">{name}: '
            f'{escape(claim.result["title"])} (<span class="{kind}">{escape(word)}</span>)</h2>'
            + (f"<p>{escape(why)}</p>" if why else "")
            + f'<div class="pair"><div>{effect(first, last)}</div><div>{effect(last, first)}</div>'
            f"</div>{saboteurs(first, last)}"
            + (f'<details{" open" * (word != "same")}><summary>{count}</summary>'
               f'<div class="pair figures">{shown}</div></details>' if shown else "")
            + "</section>")


def heading(side: str, run: Evidence, out: pathlib.Path) -> str:
    """What a column is about, with a link to its report if there is one beside the evidence."""
    page = run.folder / "report/report.html"
    text = f"<b>{side}</b> {escape(words.where(run))}"
    if is_folder(run.folder) and page.is_file():
        files = raw.of_run({"report/report.html": 1}, run.folder, out)
        text += ", " + files.link("report/report.html", "its report")
    return f"<div>{text}</div>"


def render(first: Evidence, last: Evidence, names: list[str], out: pathlib.Path) -> str:
    heads = "".join(heading(side, run, out) for side, run in zip(SIDES, (first, last)))
    return (f'<div class="pair heads">{heads}</div>'
            + "\n".join(section(name, (first, last)) for name in names))
