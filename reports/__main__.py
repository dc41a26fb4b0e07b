"""Renders the report of one evidence folder."""

import argparse
import pathlib
import sys

from reports import evidence, markdown, page, plots


def main() -> int:
    parser = argparse.ArgumentParser(prog="reports", description=__doc__)
    parser.add_argument("evidence", type=pathlib.Path, help="a folder that tollens run wrote")
    parser.add_argument("--out", type=pathlib.Path,
                        help="where the report goes; default: report/ in the evidence")
    arguments = parser.parse_args()
    out: pathlib.Path = arguments.out or arguments.evidence / "report"
    try:
        found = evidence.read(arguments.evidence)
        plots.draw_all([series for claim in found.claims for series in claim.series], out / "plots")
        for walk in (walk for claim in found.claims for walk in claim.walks):
            plots.draw_walk(walk, out / "plots" / walk.file_name)
        (out / "report.md").write_text(markdown.render(found))
        (out / "report.html").write_text(page.render(found, out / "plots"))
    except (ValueError, OSError) as error:
        print(f"reports: {error}", file=sys.stderr)
        return 2
    print(f"report: {out / 'report.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
