"""Compares runs in the order given: what changed, and in which run.

    python3 -m reports compare OLD NEW... [--across] [--out FOLDER] [--open]

Each run is an evidence folder or an archive of one. The first is the baseline. A change counts if
the whole interval is further from the baseline's than the claim's tolerance in thresholds.toml.
`tollens gate`, which is for pipelines, has the same rule. Of two runs the page shows each claim
side by side.
"""

import argparse
import pathlib

from . import answer, change, compare_page, evidence, opened


def main(arguments: list[str], prog: str = "reports compare") -> int:
    parser = argparse.ArgumentParser(prog=prog, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", type=pathlib.Path, nargs="+",
                        help="two evidence folders or archives, or more")
    parser.add_argument("--across", action="store_true",
                        help="compare runs of different devices, modes or thresholds too")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("comparison"))
    parser.add_argument("--no-png", action="store_true")
    opened.add_option(parser)
    answer.add_option(parser)
    options = parser.parse_args(arguments)
    try:
        if len(options.evidence) < 2:
            raise ValueError("a comparison needs two runs or more")
        runs = [evidence.read(folder) for folder in options.evidence]
        note = next((why for run in runs[1:] if (why := change.difference(runs[0], run))), "")
        if note and not options.across:
            raise ValueError(f"{note}: not compared; --across compares them anyway")
        drawn = compare_page.figures(runs, options.across)
        html, text = compare_page.render(runs, drawn, note, options.out)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "compare.html").write_text(html, encoding="utf-8")
        (options.out / "compare.md").write_text(text, encoding="utf-8")
        if not options.no_png:
            from .drawing import plots
            plots.draw_all(drawn, options.out / "plots")
    except (ValueError, OSError) as error:
        return answer.complain("compare", options, str(error))
    found = compare_page.rows(runs)
    if options.json:
        answer.write("compare", {
            "page": str(options.out / "compare.html"), "markdown": str(options.out / "compare.md"),
            "claims": [{"id": row[0], "first": row[3], "last": row[4], "change": row[5],
                        "reason": row[6] or None} for row in found]})
    else:
        for row in found:
            print(f"{row[0]:<4}{row[5]:<13}{row[3]} | {row[4]}  {row[6]}".rstrip())
        print(f"comparison: {options.out / 'compare.html'}")
    if options.open:
        opened.open_page(options.out / "compare.html")
    return 0
