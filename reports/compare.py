"""Compares runs in the order given: what changed, and in which run.

    python3 -m reports compare OLD NEW... [--across] [--out FOLDER]

Each run is an evidence folder or an archive of one. The first is the baseline. A change counts if
the whole interval is further from the baseline's than the claim's tolerance in thresholds.toml.
`tollens gate`, which is for pipelines, has the same rule.
"""

import argparse
import pathlib
import sys
from html import escape
from typing import Any

from . import evidence, markdown, page, svg, thresholds, trend, words
from .evidence import Evidence
from .figure import Figure

HEADINGS = ("", "claim", "verdict", "first", "last", "change", "reason")


def difference(one: Evidence, other: Evidence) -> str:
    """Why two runs cannot be compared; "" if they can."""
    for run in (one, other):
        if run.results.get("under"):
            return f"{run.folder} was run with the injected fault {run.results['under']}"
        if run.run.get("filter"):
            return f"{run.folder} ran only the attacks {run.run['filter']}"
    here, there = one.results["device"], other.results["device"]
    if (here["kind"], here["name"]) != (there["kind"], there["name"]):
        return (f"{one.folder} ran on {here['name']} ({here['kind']}) and {other.folder} on "
                f"{there['name']} ({there['kind']})")
    if one.results["mode"] != other.results["mode"]:
        return (f"{one.folder} is a {one.results['mode']} run and {other.folder} is a "
                f"{other.results['mode']} run")
    for claim in one.claims:
        found = other.claim(claim.id)
        for key in ("threshold", "unit", "direction"):
            if found is not None and claim.result[key] != found.result[key]:
                return (f"{claim.id} has the {key} {claim.result[key]} in {one.folder} and "
                        f"{found.result[key]} in {other.folder}")
    return ""


def ends(row: dict[str, Any]) -> tuple[float, float]:
    """An effect's interval, negated where less is worse, so that more is worse."""
    low = row["effect"] if row.get("low") is None else row["low"]
    high = row["effect"] if row.get("high") is None else row["high"]
    return (-high, -low) if row["direction"] == "above" else (low, high)


def change(before: dict[str, Any] | None, now: dict[str, Any] | None,
           tolerance: float) -> tuple[str, str]:
    """A word and a reason."""
    kinds = [row["verdict"] if row else "not_tested" for row in (before, now)]
    if before is None or now is None or "not_tested" in kinds:
        if kinds == ["not_tested", "not_tested"]:
            return "", ""
        return ("new", "") if kinds[0] == "not_tested" else ("cannot tell", "no longer tested")
    if kinds[1] == "falsified":
        return "WORSE", now["reason"] or "falsified"
    if kinds[1] == "inconclusive":
        return "cannot tell", now["reason"] or "inconclusive"
    if kinds[0] == "falsified":
        return "better", "it was falsified before"
    if before["effect"] is None or now["effect"] is None:
        return "cannot tell", "there is no effect to compare"
    (old_low, old_high), (low, high) = ends(before), ends(now)
    if low > old_high + tolerance:
        return "WORSE", f"by more than the tolerance of {tolerance:g} {now['unit']}"
    if high < old_low - tolerance:
        return "better", f"by more than the tolerance of {tolerance:g} {now['unit']}"
    if high <= old_low + tolerance:
        return "same", ""
    return "cannot tell", f"the intervals are too wide for a tolerance of {tolerance:g}"


def rows(runs: list[Evidence]) -> list[tuple[str, ...]]:
    found = []
    for name, limits in thresholds.load()[0].items():
        first, last = runs[0].claim(name), runs[-1].claim(name)
        word, why = change(first.result if first else None, last.result if last else None,
                           float(limits["tolerance"]))
        if not word:
            continue  # neither run tested it
        verdicts = [words.verdict(claim) if claim else "missing" for claim in (first, last)]
        found.append((name, limits["title"], " → ".join(dict.fromkeys(verdicts)),
                      words.effect(first) if first else "", words.effect(last) if last else "",
                      word, why))
    return found


def figures(runs: list[Evidence], across: bool) -> list[Figure]:
    found: list[Figure] = []
    for name, limits in thresholds.load()[0].items():
        one = trend.effect_figure(runs, name, float(limits["tolerance"]))
        if one is not None:
            found.append(one)
        found += trend.series_figures(runs, name, merge=not across)
    return found


def render(runs: list[Evidence], drawn: list[Figure], note: str) -> tuple[str, str]:
    """The page and the Markdown."""
    title = f"Tollens: {len(runs)} runs compared"
    listed = [(str(number), words.where(run), words.headline(run), str(run.folder))
            for number, run in enumerate(runs, 1)]
    html = [f"<h1>{title}</h1>"]
    text = [f"# {title}", ""]
    if note:
        warning = f"Compared because of --across, though {note}: a difference may have that cause."
        html.append(f'<p class="note">{escape(warning)}</p>')
        text += [markdown.escape(warning), ""]
    head = ("run", "", "verdicts", "folder")
    cells = [tuple(map(escape, row)) for row in rows(runs)]
    html += [page.stacked("runs", head, (page.row(("", "", *head[2:]), map(escape, row))
                                         for row in listed)),
             page.stacked("changes", HEADINGS, (page.row(("", "", *HEADINGS[2:]), row)
                                                for row in cells)),
             page.figures([one for one in drawn if one.name.startswith("trend")]),
             page.folded("Call latency", page.figures(
                 [one for one in drawn if not one.name.startswith("trend")]))]
    text += [markdown.table(head, listed), "", markdown.table(HEADINGS, rows(runs)), "",
             *markdown.pictures(drawn, "")]
    return page.whole(title, "\n".join(html)), "\n".join(text) + "\n"


def main(arguments: list[str], prog: str = "reports compare") -> int:
    parser = argparse.ArgumentParser(prog=prog, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", type=pathlib.Path, nargs="+",
                        help="two evidence folders or archives, or more")
    parser.add_argument("--across", action="store_true",
                        help="compare runs of different devices, modes or thresholds too")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("comparison"))
    parser.add_argument("--no-png", action="store_true")
    options = parser.parse_args(arguments)
    try:
        if len(options.evidence) < 2:
            raise ValueError("a comparison needs two runs or more")
        runs = [evidence.read(folder) for folder in options.evidence]
        note = next((why for run in runs[1:] if (why := difference(runs[0], run))), "")
        if note and not options.across:
            raise ValueError(f"{note}: not compared; --across compares them anyway")
        drawn = figures(runs, options.across)
        html, text = render(runs, drawn, note)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "compare.html").write_text(html, encoding="utf-8")
        (options.out / "compare.md").write_text(text, encoding="utf-8")
        if not options.no_png:
            from . import plots
            plots.draw_all(drawn, options.out / "plots")
    except (ValueError, OSError) as error:
        print(f"reports: {error}", file=sys.stderr)
        return 2
    for row in rows(runs):
        if row[5]:
            print(f"{row[0]:<4}{row[5]:<13}{row[3]} | {row[4]}  {row[6]}".rstrip())
    print(f"comparison: {options.out / 'compare.html'}")
    return 0
