"""The page of a comparison, and the same as Markdown."""

import pathlib
from collections.abc import Sequence
from html import escape

from . import change, markdown, parts, side_by_side, summary, thresholds, trend, words
from .evidence import Evidence
from .drawing.figure import Figure

HEADINGS = ("", "claim", "verdict", "first", "last", "change", "reason")


def names(runs: Sequence[Evidence]) -> list[str]:
    """The claims of all runs: this repository's, and then those of plugins."""
    found = {claim.id for run in runs for claim in run.claims}
    others = dict.fromkeys(claim.id for run in runs for claim in run.claims)
    own = [name for name in thresholds.load()[0] if name in found]
    return [*own, *(name for name in others if name not in own)]


def rows(runs: Sequence[Evidence]) -> list[tuple[str, ...]]:
    """A row for each claim that a run tested, those that need a look first."""
    found = []
    for name in names(runs):
        first, last = runs[0].claim(name), runs[-1].claim(name)
        word, why = change.of_claim(first, last)
        claim = last or first
        if not word or claim is None:
            continue  # neither run tested it
        verdicts = [words.verdict(one) if one else "missing" for one in (first, last)]
        found.append((name, claim.result["title"], " → ".join(dict.fromkeys(verdicts)),
                      words.effect(first) if first else "", words.effect(last) if last else "",
                      word, why))
    return sorted(found, key=lambda row: summary.CHANGES.index(row[5]))


def sentence(found: Sequence[tuple[str, ...]]) -> str:
    """What changed from the first run to the last."""
    changes = [row[5] for row in found]
    worse = [row[0] for row in found if row[5] == "WORSE"]
    if worse:
        return f"{words.counted(len(worse), 'claims')} worse: {summary.listed(worse)}"
    if not changes:
        return "Nothing that both runs tested"
    return "Nothing worse: " + ", ".join(f"{changes.count(kind)} {kind}" for kind in summary.CHANGES
                                         if kind in changes)


def figures(runs: Sequence[Evidence], across: bool) -> list[Figure]:
    found: list[Figure] = []
    for name in names(runs):
        one = trend.effect_figure(runs, name, change.tolerance_of(name) or 0.0)
        if one is not None:
            found.append(one)
        found += trend.series_figures(runs, name, merge=not across)
    return found


def changes_table(found: Sequence[tuple[str, ...]], linked: bool) -> str:
    cells = []
    for row in found:
        name, *rest = map(escape, row)
        rest[4] = f'<span class="{"worse" if row[5] == "WORSE" else "changed"}">{rest[4]}</span>'
        cells.append([f'<a href="#{name}"><b>{name}</b></a>' if linked else name, *rest])
    return parts.stacked("changes", HEADINGS, (parts.row(("", "", *HEADINGS[2:]), row)
                                               for row in cells))


def render(runs: Sequence[Evidence], drawn: list[Figure], note: str,
           out: pathlib.Path) -> tuple[str, str]:
    """The page, which will be in the folder out, and the Markdown."""
    found, listed = rows(runs), []
    for number, run in enumerate(runs, 1):
        listed.append((str(number), words.where(run), words.headline(run), str(run.folder)))
    head, heading = ("run", "", "verdicts", "folder"), sentence(found)
    html = [f"{parts.BRAND}<h1>{escape(heading)}</h1>"]
    text = [f"# {markdown.escape(heading)}", ""]
    if note:
        warning = f"Compared because of --across, though {note}: a difference may have that cause."
        html.append(f'<p class="note">{escape(warning)}</p>')
        text += [markdown.escape(warning), ""]
    trends = [one for one in drawn if one.name.startswith("trend")]
    latencies = parts.figures([one for one in drawn if one not in trends])
    html += [parts.stacked("runs", head, (parts.row(("", "", *head[2:]), map(escape, row))
                                         for row in listed)),
             changes_table(found, len(runs) == 2)]
    if len(runs) == 2:
        html.append(side_by_side.render(runs[0], runs[1], [row[0] for row in found], out))
    else:
        html.append(parts.figures(trends))
    html.append(parts.folded("Call latency of all runs, and added up", latencies))
    text += [markdown.table(head, listed), "", markdown.table(HEADINGS, found), "",
             *markdown.pictures(drawn, "")]
    return (parts.whole(f"Tollens: {len(runs)} runs compared", "\n".join(html)),
            "\n".join(text) + "\n")
