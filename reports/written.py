"""Writes the generated parts of documents: the README's verdicts, the index, the requirements.

    python3 -m reports.written            checks that each matches the evidence and the lists
    python3 -m reports.written --write    writes those that do not
"""

import argparse
import pathlib
import re
import sys

from . import (
    archive, claims_index, code, evidence, limits, markdown, requirements, requirements_page,
    thresholds, words)
from .drawing import drawn, svg
from .evidence import Claim, Evidence
from .drawing.figure import Figure
from .requirements import ROOT
from .style import ALONE

PUBLISHED = ROOT / "reports/published"
# The README shows the first two of these figures that published evidence has.
README_FIGURES = (("H12", "ratio"), ("H11", "percentiles"), ("H4", "blocks"), ("H3", "percentiles"))


def read_published(folder: pathlib.Path = PUBLISHED) -> list[Evidence]:
    """All published runs that have an archive, the newest first."""
    runs = [evidence.read(path.parent) for path in sorted(folder.glob(f"*/{archive.NAME}"))]
    return sorted(runs, key=lambda run: -float(run.run.get("begin_s") or 0))


def newest(runs: list[Evidence]) -> dict[str, tuple[Evidence, Claim]]:
    """For each claim, the newest run that tested it and came to its end: a run that failed or was
    interrupted has exit code 2, and may have measured, but nothing is judged by it. Nor is a
    verdict taken from a run that measured detection limits and no severity: it has one seed."""
    found: dict[str, tuple[Evidence, Claim]] = {}
    for run in (run for run in runs if run.run.get("exit_code") != 2):
        for claim in run.claims:
            for_limits = claim.result.get("detection_limits") and not claim.result.get("severity")
            if claim.result["verdict"] != "not_tested" and not for_limits:
                found.setdefault(claim.id, (run, claim))
    return found


def verdicts(runs: list[Evidence]) -> dict[str, str]:
    return requirements.verdicts_of(claim for _, claim in newest(runs).values())


def pick(runs: list[Evidence]) -> list[Figure]:
    """The README's figures."""
    latest, found = newest(runs), []
    for name, kind in README_FIGURES:
        if name in latest:
            figures = [figure for figure in drawn.of_claim(latest[name][1]).all()
                       if figure.name.startswith(f"{name}_{kind}")]
            found += figures[:1]
    return found[:2]


def since(run: Evidence, claim: str, now: dict[str, str]) -> str:
    """What of a claim's code has changed since a run; empty: nothing."""
    then = code.read(run.folder)
    if not then:
        return "not known"
    return ", ".join(code.changed(claim, then, now))


def verdict_block(runs: list[Evidence]) -> str:
    """The table of all claims, each with the verdict of the newest run that tested it. That of
    other code than today's is grey, as far as Markdown can say so: small and in brackets."""
    latest, rows, counts = newest(runs), [], dict.fromkeys(words.SIGNS, 0)
    now, older = code.digests(code.in_tree()), 0
    for name, claim in thresholds.load()[0].items():
        if name not in latest:
            counts["not_tested"] += 1
            rows.append((name, claim["title"], "not tested", *[""] * 5))
            continue
        run, found = latest[name]
        counts[found.result["verdict"]] += 1
        severity = found.result["severity"]
        caught = f"{severity['caught']} of {severity['of']}" if severity else "not run"
        changes = since(run, name, now)
        older += changes != ""
        word = words.verdict(found)
        rows.append((name, claim["title"], f"({word})" if changes else word, words.effect(found),
                     words.survives(found), caught, f"{run.results['commit'][:7]}, "
                     f"{words.day(run)}", changes or "nothing"))
    used = {id(run): run for run, _ in latest.values()}
    lines = [", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items()) +
             ", from the newest published run of each claim. " + (
                 "No claim's code has changed since." if not older else
                 f"The code under {older} of them has changed since; their verdicts are in "
                 "brackets."), ""]
    for run in used.values():
        folder = run.folder.relative_to(ROOT).as_posix()
        lines.append(f"* {words.where(run)}: [`{folder}`]({folder})")
    lines += ["", markdown.table(("", "claim", "verdict", "effect", "survives if",
                                  "saboteurs detected", "commit and day", "changed since"),
                                 rows), ""]
    lines += [f"![{markdown.escape(figure.alt)}](reports/published/plots/{figure.name}.svg)"
              for figure in pick(runs)]
    return "\n".join(lines)


def limits_block(runs: list[Evidence]) -> str:
    """The detection limits of the newest published run that measured those of each claim."""
    rows, used = [], {}
    for name in thresholds.load()[0]:
        found = [(run, claim) for run in runs for claim in run.claims
                 if claim.id == name and claim.result.get("detection_limits")]
        for run, claim in found[:1]:
            used[id(run)] = run
            rows += limits.rows(claim)
    if not rows:
        return "No published run has measured them yet."
    lines = [f"* {words.where(run)}" for run in used.values()]
    return "\n".join([*lines, "", markdown.table(limits.HEADINGS, rows)])


def with_block(text: str, name: str, block: str, path: pathlib.Path) -> str:
    begin, end = f"<!-- {name}: written by reports/written.py -->", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{path} must have each of the lines {begin} and {end} once")
    return re.sub(re.escape(begin) + ".*" + re.escape(end),
                  lambda _: f"{begin}\n{block}\n{end}", text, flags=re.DOTALL)


def all_written() -> dict[pathlib.Path, str]:
    """Each file and the text it must have."""
    runs = read_published()
    readme, index = ROOT / "README.md", ROOT / "hypotheses/README.md"
    files = {
        readme: with_block(readme.read_text(encoding="utf-8"), "verdicts", verdict_block(runs),
                           readme),
        index: with_block(index.read_text(encoding="utf-8"), "index", claims_index.block(), index),
        ROOT / "hypotheses/REQUIREMENTS.md": requirements_page.page(verdicts(runs)),
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
        print(f"{name} is", "written" if arguments.write else
              "stale; run python3 -m reports.written --write")
    return 1 if stale and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
