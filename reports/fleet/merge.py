"""Merges the runs of many machines into one verdict and one page.

    python3 -m reports merge EVIDENCE... --out DIR

EVIDENCE is a folder that tollens run wrote, an archive of one, or a folder with such an archive.
The folder DIR gets merge.json with all numbers, merge.html and merge.md, and histograms/ with the
histograms of all machines added up, as HdrHistogram logs. A machine is identified by TOLLENS_NODE,
as set during the run, and by the UUID of its GPU.

Exit code: 0 nothing was falsified; 1 a claim was, on any machine; 2 a run had failed, evidence is
missing or refused without --partial, or runs are mixed without --mixed; 3 a claim is inconclusive,
or with --partial evidence is missing or refused.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from .. import answer, opened
from . import hdr_write, merge_page, merging
from .fleet_verdicts import by_machine, days, group_names, measured, of_claims
from .merge_page import Merged


def exit_code(merged: Merged, inconclusive: str) -> int:
    codes = {run.exit_code for run in merged.fleet.runs}
    verdicts = {claim.verdict for claim in merged.claims}
    if "falsified" in verdicts or 1 in codes:
        return 1
    if codes - {0, 1, 3}:
        return 2
    incomplete = bool(merged.fleet.missing or merged.fleet.refused)
    return 3 if incomplete or (inconclusive == "fail" and "inconclusive" in verdicts) else 0


def members(merged: Merged, out: pathlib.Path, code: int) -> dict[str, Any]:
    """The answer of --json, which is merge.json too: hypotheses/JSON.md describes it."""
    fleet, runs = merged.fleet, {}
    for run in fleet.runs:
        runs.setdefault(run.machine, []).append(run)
    return {
        "page": str(out / "merge.html"), "markdown": str(out / "merge.md"),
        "histograms": str(out / "histograms"), "exit_code": code, "mixed": merged.mixed or None,
        "machines": [{"machine": machine, "node": own[-1].node or None,
                      "uuid": own[-1].uuid or None, "device": own[-1].device,
                      "kind": own[-1].kind, "runs": [run.path for run in own],
                      "failed": [run.path for run in own if run.exit_code not in (0, 1, 3)]}
                     for machine, own in runs.items()],
        "claims": [{"id": claim.id, "title": claim.title, "verdict": claim.verdict,
                    **{verdict: len(named) for verdict, named in claim.machines.items()},
                    "runs": claim.runs, "samples": claim.samples,
                    "saboteurs": claim.severity and claim.severity[1],
                    "noticed": claim.severity and claim.severity[0],
                    "lowest": min(claim.effects.values(), default=None),
                    "highest": max(claim.effects.values(), default=None),
                    "unit": claim.rule["unit"],
                    "reasons": [{"machine": machine, "evidence": path, "reason": reason}
                                for machine, path, reason in claim.reasons]}
                   for claim in merged.claims],
        "outliers": [{"machine": machine,
                      "quantities": [{"device": one.group, "name": one.name, "unit": one.unit,
                                      "value": found.value, "median": one.spread.median,
                                      "deviations": found.deviations if one.spread.scale else None}
                                     for one, found in rows]}
                     for machine, rows in by_machine(merged.measured).items()],
        "spreads": [{"device": one.group, "name": one.name, "unit": one.unit,
                     **dataclasses.asdict(one.spread),
                     "limit": one.spread.limit if one.spread.limit < 1e6 else None}
                    for one in merged.measured],
        "days": [dataclasses.asdict(day) for day in merged.days],
        "missing": fleet.missing,
        "refused": [{"evidence": path, "reason": reason} for path, reason in fleet.refused],
        "duplicates": [{"evidence": path, "first": first} for path, first in fleet.duplicates]}


def write_histograms(merged: Merged, folder: pathlib.Path) -> None:
    """A log for each group and claim; a tag is attack:series."""
    names = group_names(merged.fleet.runs)
    logs: dict[str, list[tuple[str, Any]]] = {}
    for (group, (claim, attack, name)), one in merged.fleet.histograms.items():
        tag = f"{attack}:{name}".replace(",", "_").replace(" ", "_")
        logs.setdefault(merge_page.fleet_figures.file_name(names[group], claim), []).append(
            (tag, one))
    folder.mkdir(parents=True, exist_ok=True)
    for file, series in logs.items():
        (folder / f"{file}.hlog").write_text(hdr_write.log(series), encoding="ascii")


def write(merged: Merged, out: pathlib.Path, code: int, png: bool) -> dict[str, Any]:
    html, text, figures = merge_page.render(merged)
    said = members(merged, out, code)
    out.mkdir(parents=True, exist_ok=True)
    write_histograms(merged, out / "histograms")
    (out / "merge.html").write_text(html, encoding="utf-8")
    (out / "merge.md").write_text(text, encoding="utf-8")
    (out / "merge.json").write_text(json.dumps({"schema": 1, **said}, indent=1) + "\n",
                                    encoding="utf-8")
    if png:
        from ..drawing import plots  # matplotlib takes a second to load
        plots.draw_all(figures, out / "plots")
    return said


def checked(options: argparse.Namespace) -> Merged:
    """ValueError: something is missing, refused or mixed, and was not allowed."""
    fleet = merging.merge(options.evidence)
    left = [f"there is no {path}" for path in fleet.missing]
    left += [reason for _, reason in fleet.refused]
    if not fleet.runs:
        raise ValueError("nothing could be merged: " + "; ".join(left[:20]))
    if left and not options.partial:
        more = f"; and {len(left) - 20} more" if len(left) > 20 else ""
        raise ValueError(f"{'; '.join(left[:20])}{more}: not merged; --partial merges the rest")
    mixed = merging.mixture(fleet.runs)
    if mixed and not options.mixed:
        raise ValueError(f"{mixed}: not merged; --mixed merges them anyway")
    return Merged(fleet, of_claims(fleet.runs), measured(fleet.runs), days(fleet.runs), mixed)


def lines(merged: Merged) -> Iterator[str]:
    """The lines for the terminal: the verdicts, and what needs a look."""
    yield merge_page.sentence(merged)
    for claim in merged.claims:
        verdict, counts = claim.verdict.replace("_", " "), merge_page.counts(claim)
        yield f"{claim.id:<4}{verdict:<13}{counts:<30} {claim.title}"
        for machine, path, reason in claim.reasons[:5]:
            yield f"      {machine}: {reason} ({path})"
    for row in merge_page.outlier_rows(merged):
        yield (f"out of line: {row[0]}, in {row[1]} quantities: {row[2]} is {row[3]}, the median "
               f"{row[4]}: {row[5]}")
    for run in merged.fleet.runs:
        if run.exit_code not in (0, 1, 3):
            yield f"failed: {run.path} ended with {run.exit_code}"
    yield from merge_page.left_out(merged)


def main(arguments: list[str], prog: str = "reports merge") -> int:
    parser = argparse.ArgumentParser(prog=prog, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", nargs="+", help="evidence folders or archives")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--partial", action="store_true",
                        help="merge the rest if some evidence is missing or refused")
    parser.add_argument("--mixed", action="store_true",
                        help="merge runs of several commits, modes or thresholds too")
    parser.add_argument("--inconclusive", choices=("fail", "warn"), default="fail",
                        help="whether an inconclusive verdict fails")
    parser.add_argument("--no-png", action="store_true")
    opened.add_option(parser)
    answer.add_option(parser)
    options = parser.parse_args(arguments)
    try:
        merged = checked(options)
        code = exit_code(merged, options.inconclusive)
        said = write(merged, options.out, code, not options.no_png)
    except (ValueError, OSError) as error:
        return answer.complain("merge", options, str(error))
    if options.json:
        answer.write("merge", said)
    else:
        print(*map(merging.plain, lines(merged)), f"merge: {options.out / 'merge.html'}", sep="\n")
    if options.open:
        opened.open_page(options.out / "merge.html")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
