"""Writes the generated pages: results, performance, published runs, claims, requirements.

    python3 -m reports.written            checks that each matches the evidence and the lists
    python3 -m reports.written --write    writes those that do not
"""

import argparse
import pathlib
import re
import sys

from . import markdown, performance_page, published_index, requirements, results_page, thresholds
from . import words
from .drawing import svg
from .evidence import Evidence
from .requirements import ROOT
from .results_page import verdicts
from .style import ALONE

PUBLISHED = published_index.PUBLISHED


def index_block() -> str:
    """The claims, the files that attack them, and their saboteurs."""
    claims, sabotage = thresholds.load()
    rows = []
    for name, claim in claims.items():
        number = f"h{int(name[1:]):02}"
        files = [path.relative_to(ROOT / "hypotheses").as_posix() for pattern in
                 (f"{number}_*.c", f"{number}/*.c")
                 for path in sorted((ROOT / "hypotheses").glob(pattern))
                 if not path.stem.endswith("_test")]
        attack = ", ".join(f"[{path.rpartition('/')[2]}]({path})" for path in files)
        attack = attack or "no attack yet"
        saboteurs = [one for some in thresholds.forced(sabotage.get(name, {})).values()
                     for one in some]
        limit = f"{words.DIRECTIONS[claim['direction']]} {claim['threshold']:g} {claim['unit']}"
        rows.append(f"| {name} | {markdown.escape(claim['title'])} | {limit} | {attack} | "
                    f"{markdown.escape(', '.join(saboteurs))} |")
    return "\n".join(["| | claim | survives if | attack | saboteurs |", "|---|---|---|---|---|",
                      *rows])


def requirements_page(runs: list[Evidence]) -> str:
    demands = requirements.rows(verdicts(runs))
    principles = [(p["name"], p["decision"], ", ".join(p["see"]))
                  for p in requirements.load()[1]]
    return "\n".join([
        "# Requirements", "",
        "Written by `reports/written.py` from `requirements.toml` and the published evidence.",
        "*Tested*: `ci/check` runs the named tests, and fails if one is missing. A verdict is that",
        "of the newest published run on a GPU, or *not tested* if there is none. *Open*: not",
        "implemented, or not checked.", "",
        f"{len(demands)} requirements: {requirements.summary(verdicts(runs))}.", "",
        markdown.table(requirements.HEADINGS, demands), "",
        "## Citations", "",
        "The works that spec 004 section 5 cites, and what a search for each found. `standing` is",
        "that of the work found, or of the one used instead.", "",
        markdown.table(("", "title", "found", "standing", "identifier"),
                       map(requirements.citation_row, requirements.citations())), "",
        "## The Toyota Way", "",
        "The principles of spec 004 section 1, the decision that each led to, and where to see it.",
        "", markdown.table(("principle", "decision", "see"), principles), ""])


def with_block(text: str, name: str, block: str, path: pathlib.Path) -> str:
    begin, end = f"<!-- {name}: written by reports/written.py -->", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{path} must have each of the lines {begin} and {end} once")
    return re.sub(re.escape(begin) + ".*" + re.escape(end),
                  lambda _: f"{begin}\n{block}\n{end}", text, flags=re.DOTALL)


def all_written() -> dict[pathlib.Path, str]:
    """Each file and the text it must have."""
    runs = results_page.read_published()
    index = ROOT / "hypotheses/README.md"
    files = {
        ROOT / "reports/RESULTS.md": results_page.page(runs),
        ROOT / "kernels/PERFORMANCE.md": performance_page.page(),
        PUBLISHED / "INDEX.md": published_index.page(),
        index: with_block(index.read_text(encoding="utf-8"), "index", index_block(), index),
        ROOT / "hypotheses/REQUIREMENTS.md": requirements_page(runs),
    }
    for figure in results_page.pick(runs):
        style = f"<style>{ALONE}</style>"
        text = svg.draw(figure).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '
                                        f'width="{svg.WIDTH}" height="{svg.HEIGHT}" ', 1)
        files[PUBLISHED / f"plots/{figure.name}.svg"] = text.replace("<title>", style + "<title>",
                                                                     1) + "\n"
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    stale = []
    try:
        files = all_written()
        for path, text in files.items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(path.relative_to(ROOT))
                if arguments.write:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
        for path in sorted((PUBLISHED / "plots").glob("*")):
            if path not in files:
                stale.append(path.relative_to(ROOT))
                if arguments.write:
                    path.unlink()
    except (ValueError, OSError) as error:
        print(f"written: {error}", file=sys.stderr)
        return 2
    for name in stale:
        print(f"{name} is", "written" if arguments.write else
              "stale; run python3 -m reports.written --write")
    return 1 if stale and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
