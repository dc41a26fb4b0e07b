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

from . import evidence, markdown, parts, thresholds, trend, words
from .change import change, difference
from .evidence import Evidence
from .figure import Figure

HEADINGS = ("", "claim", "verdict", "first", "last", "change", "reason")


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
    html = [f"{parts.BRAND}<h1>{len(runs)} runs compared</h1>"]
    text = [f"# {title}", ""]
    if note:
        warning = f"Compared because of --across, though {note}: a difference may have that cause."
        html.append(f'<p class="note">{escape(warning)}</p>')
        text += [markdown.escape(warning), ""]
    head = ("run", "", "verdicts", "folder")
    cells = [tuple(map(escape, row)) for row in rows(runs)]
    html += [parts.stacked("runs", head, (parts.row(("", "", *head[2:]), map(escape, row))
                                         for row in listed)),
             parts.stacked("changes", HEADINGS, (parts.row(("", "", *HEADINGS[2:]), row)
                                                for row in cells)),
             parts.figures([one for one in drawn if one.name.startswith("trend")]),
             parts.folded("Call latency", parts.figures(
                 [one for one in drawn if not one.name.startswith("trend")]))]
    text += [markdown.table(head, listed), "", markdown.table(HEADINGS, rows(runs)), "",
             *markdown.pictures(drawn, "")]
    return parts.whole(title, "\n".join(html)), "\n".join(text) + "\n"


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
