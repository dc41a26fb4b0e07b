"""Writes the generated pages: results, performance, published runs, claims, requirements.

    python3 -m reports.written            checks that each matches the evidence and the lists
    python3 -m reports.written --write    writes those that do not
"""

import argparse
import json
import pathlib
import re
import sys

from . import claims_index, performance_page, published_index, requirements_page, results_page
from .drawing import svg
from .evidence import Evidence
from .requirements import ROOT
from .results_page import verdicts
from .style import ALONE

PUBLISHED = published_index.PUBLISHED


def check_block() -> str:
    """How long the newest published ci/check took."""
    took = json.loads((PUBLISHED / "check.json").read_text(encoding="utf-8"))
    words = f"`ci/check {took['options']}`".replace(" `", "`")
    return (f"On {took['day']}, {words} took {took['seconds']} s on {took['cores']} cores "
            f"({took['cpu_seconds']} CPU s)\nin a fresh clone: {took['passed']} steps passed, "
            f"{took['failed']} failed.")


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
    readme = ROOT / "README.md"
    files = {
        readme: with_block(readme.read_text(encoding="utf-8"), "check", check_block(), readme),
        ROOT / "reports/RESULTS.md": results_page.page(runs),
        ROOT / "kernels/PERFORMANCE.md": performance_page.page(),
        PUBLISHED / "INDEX.md": published_index.page(),
        index: with_block(index.read_text(encoding="utf-8"), "index", claims_index.block(), index),
        ROOT / "hypotheses/REQUIREMENTS.md": requirements_page.page(verdicts(runs)),
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
