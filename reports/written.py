"""What programs write of documents: the verdicts in the README, the index, the requirements.

    python3 -m reports.written            whether each is what the evidence and the lists say now
    python3 -m reports.written --write    makes each so
"""

import argparse
import pathlib
import re
import sys

from reports import drawn, evidence, markdown, requirements, svg, thresholds, words
from reports.evidence import Claim, Evidence
from reports.figure import Figure
from reports.requirements import ROOT
from reports.style import ALONE

PUBLISHED = ROOT / "reports/published"
# Two figures for the README, the first two of these that published evidence has.
WISHES = (("H12", "ratio"), ("H11", "percentiles"), ("H4", "blocks"), ("H3", "percentiles"))


def read_published(folder: pathlib.Path = PUBLISHED) -> list[Evidence]:
    """All published runs, the newest first."""
    runs = [evidence.read(path.parent) for path in sorted(folder.glob("*/evidence/run.json"))]
    return sorted(runs, key=lambda run: -float(run.run.get("begin_s") or 0))


def newest(runs: list[Evidence]) -> dict[str, tuple[Evidence, Claim]]:
    """For each claim the newest run that tested it."""
    found: dict[str, tuple[Evidence, Claim]] = {}
    for run in runs:
        for claim in run.claims:
            if claim.result["verdict"] != "not_tested":
                found.setdefault(claim.id, (run, claim))
    return found


def verdicts(runs: list[Evidence]) -> dict[str, str]:
    return requirements.verdicts_of(claim for _, claim in newest(runs).values())


def pick(runs: list[Evidence]) -> list[Figure]:
    """The README's figures."""
    told, found = newest(runs), []
    for name, kind in WISHES:
        if name in told:
            figures = [figure for figure in drawn.of_claim(told[name][1]).all()
                       if figure.name.startswith(f"{name}_{kind}")]
            found += figures[:1]
    return found[:2]


def verdict_block(runs: list[Evidence]) -> str:
    """The table of all claims, each by the newest run that tested it."""
    told, rows, counts = newest(runs), [], dict.fromkeys(words.SIGNS, 0)
    for name, claim in thresholds.load()[0].items():
        if name not in told:
            counts["not_tested"] += 1
            rows.append((name, claim["title"], "not tested", "", "", ""))
            continue
        run, found = told[name]
        counts[found.result["verdict"]] += 1
        severity = found.result["severity"]
        caught = f"{severity['caught']} of {severity['of']}" if severity else ""
        rows.append((name, claim["title"], words.verdict(found), words.effect(found),
                     words.survives(found), caught))
    used = {id(run): run for run, _ in told.values()}
    lines = [", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items()) +
             ", by the newest published run of each:", ""]
    lines += [f"* {words.where(run)}: `{run.folder.relative_to(ROOT)}`" for run in used.values()]
    lines += ["", markdown.table(("", "claim", "verdict", "effect", "survives", "saboteurs "
                                  "noticed"), rows), ""]
    lines += [f"![{markdown.escape(figure.alt)}](reports/published/plots/{figure.name}.svg)"
              for figure in pick(runs)]
    return "\n".join(lines)


def index_block() -> str:
    """The claims, the files that attack them, and their saboteurs."""
    claims, sabotage = thresholds.load()
    rows = []
    for name, claim in claims.items():
        files = sorted((ROOT / "hypotheses").glob(f"h{int(name[1:]):02}_*.c"))
        attack = f"[{files[0].name}]({files[0].name})" if files else "nothing yet"
        saboteurs = [one for some in sabotage.get(name, {}).values() for one in some]
        limit = f"{words.DIRECTIONS[claim['direction']]} {claim['threshold']:g} {claim['unit']}"
        rows.append(f"| {name} | {markdown.escape(claim['title'])} | {limit} | {attack} | "
                    f"{markdown.escape(', '.join(saboteurs))} |")
    return "\n".join(["| | claim | survives | attacked by | saboteurs |", "|---|---|---|---|---|",
                      *rows])


def requirements_page(runs: list[Evidence]) -> str:
    demands = requirements.rows(verdicts(runs))
    principles = [(p["name"], p["decision"], ", ".join(p["see"]))
                  for p in requirements.load()[1]]
    return "\n".join([
        "# Requirements", "",
        "Written by `reports/written.py` from `requirements.toml` and the published evidence.",
        "*Tested*: tests with that name exist; `ci/check` fails if they do not, or if they run",
        "nothing. A verdict is from the newest published run on a GPU, or *not tested* if there is",
        "none. *Open*: not built or not checked, and never counted as done.", "",
        f"{len(demands)} demands: {requirements.summary(verdicts(runs))}.", "",
        markdown.table(requirements.HEADINGS, demands), "",
        "## Citations", "",
        "The citations of spec 004 section 5, and the source found for each. `standing` is that of",
        "the source found, or of its replacement.", "",
        markdown.table(("", "title", "found", "standing", "identifier"),
                       map(requirements.citation_row, requirements.citations())), "",
        "## The Toyota Way", "",
        "The principles of spec 004 section 1, the decision that each led to, and where to see it.",
        "", markdown.table(("principle", "decision", "see"), principles), ""])


def with_block(text: str, name: str, block: str, path: pathlib.Path) -> str:
    begin, end = f"<!-- {name}: written by reports/written.py -->", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{path} must have the lines {begin} and {end} once")
    return re.sub(re.escape(begin) + ".*" + re.escape(end),
                  lambda _: f"{begin}\n{block}\n{end}", text, flags=re.DOTALL)


def all_written() -> dict[pathlib.Path, str]:
    """Each file and what it must hold."""
    runs = read_published()
    readme, index = ROOT / "README.md", ROOT / "hypotheses/README.md"
    files = {
        readme: with_block(readme.read_text(encoding="utf-8"), "verdicts", verdict_block(runs),
                           readme),
        index: with_block(index.read_text(encoding="utf-8"), "index", index_block(), index),
        ROOT / "hypotheses/REQUIREMENTS.md": requirements_page(runs),
    }
    for figure in pick(runs):
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
        print(f"{name} is", "new" if arguments.write else
              "stale: python3 -m reports.written --write")
    return 1 if stale and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
