"""What stands behind a report: every demand of the specification, and what these runs say of it."""

from collections.abc import Sequence
from html import escape

from reports import markdown, page, requirements
from reports.evidence import Evidence

NOTE = ("Tested: the tests of that name belong to ci/check, which fails where one is missing or "
        "runs nothing; they are no part of this run. Open: not built, or not checked; never "
        "counted as done.")


def verdicts(runs: Sequence[Evidence]) -> dict[str, str]:
    """Of several runs the worst of what was tested counts."""
    found: dict[str, str] = {}
    for run in runs:
        for name, verdict in requirements.verdicts_of(run.claims).items():
            if verdict != "not_tested" or name not in found:
                both = {found.get(name, verdict), verdict} - {"not_tested"}
                found[name] = min(both or {verdict}, key=requirements.WORST.index)
    return found


def html(runs: Sequence[Evidence]) -> str:
    told = verdicts(runs)
    rows = [[escape(cell) for cell in row] for row in requirements.rows(told)]
    for row in rows:
        row[4] = row[4].replace("/", "/<wbr>").replace("_", "_<wbr>")
    summary = f"{len(rows)} demands of the specification: {requirements.summary(told)}"
    return ('<h2 id="requirements">Requirements</h2>' + f'<p class="note">{escape(NOTE)}</p>' +
            page.folded(escape(summary), page.table(requirements.HEADINGS, rows)))


def text(runs: Sequence[Evidence]) -> str:
    told = verdicts(runs)
    return "\n".join(["", "## Requirements", "", markdown.escape(NOTE), "",
                      f"{requirements.summary(told)}.", "",
                      markdown.table(requirements.HEADINGS, requirements.rows(told)), ""])
