"""The last section of a report: every requirement of the specification, and its state.

The requirements name sources and tests of this repository, so a report that is made away from it,
by the installed package, has no such section.
"""

from collections.abc import Sequence
from html import escape

from . import markdown, parts, requirements
from .evidence import Evidence

NOTE = ("Tested: ci/check runs the named tests, which are not part of this run, and fails if one "
        "is missing. Open: not implemented, or not checked. Any other state is the worst verdict "
        "of this run on the named claims.")


def verdicts(runs: Sequence[Evidence]) -> dict[str, str]:
    """For each claim the worst verdict of the runs that tested it."""
    found: dict[str, str] = {}
    for run in runs:
        for name, verdict in requirements.verdicts_of(run.claims).items():
            if verdict != "not_tested" or name not in found:
                both = {found.get(name, verdict), verdict} - {"not_tested"}
                found[name] = min(both or {verdict}, key=requirements.WORST.index)
    return found


def html(runs: Sequence[Evidence]) -> str:
    if not requirements.FILE.exists():
        return ""
    by_claim = verdicts(runs)
    rows = [[escape(cell) for cell in row] for row in requirements.rows(by_claim)]
    for row in rows:
        row[4] = row[4].replace("/", "/<wbr>").replace("_", "_<wbr>")
    summary = f"{len(rows)} requirements of the specification: {requirements.summary(by_claim)}"
    return ('<h2 id="requirements">Requirements</h2>' + f'<p class="note">{escape(NOTE)}</p>' +
            parts.folded(escape(summary), parts.table(requirements.HEADINGS, rows)))


def text(runs: Sequence[Evidence]) -> str:
    if not requirements.FILE.exists():
        return ""
    by_claim = verdicts(runs)
    return "\n".join(["", "## Requirements", "", markdown.escape(NOTE), "",
                      f"{requirements.summary(by_claim)}.", "",
                      markdown.table(requirements.HEADINGS, requirements.rows(by_claim)), ""])
