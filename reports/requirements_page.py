"""hypotheses/REQUIREMENTS.md: each demand of the specification, and what came of it."""

from . import markdown, requirements

HEAD = """# Requirements

Written by `reports/written.py` from `requirements.toml` and the published evidence. Each demand
has the section of its document and its checks: `ci/check` runs these tests, and fails if one is
missing. A verdict is that of the newest published run on a GPU, or *not tested*. *Open*: not
implemented, or not checked.
"""


def demands(verdicts: dict[str, str]) -> list[str]:
    """A heading per document, and a line per demand."""
    lines, document = [], ""
    for name, text, source, came, checks in sorted(requirements.rows(verdicts),
                                                   key=lambda row: row[2][:3]):
        own = next(one for one in requirements.SOURCES if source.startswith(one))
        if own != document:
            lines += ["", f"## {'Document ' if own.isdigit() else ''}{own}", ""]
            if not own.isdigit():
                lines += ["Where a failure could look like success. Each makes the exit code",
                          "another than 0, and the tests drive it.", ""]
            document = own
        place = f" ({source[len(own) + 1:]})" if source != own else ""
        state = "" if came == "tested" else f"*{markdown.escape(came[0].upper() + came[1:])}*: "
        lines.append(f"* **{name}**{place} {markdown.escape(text)}. "
                     f"{state}{markdown.escape(checks)}".rstrip(": "))
    return lines


def page(verdicts: dict[str, str]) -> str:
    found = demands(verdicts)
    count = sum(line.startswith("*") for line in found)
    principles = [f"* **{p['name']}**: {markdown.escape(p['decision'])} "
                  f"({markdown.escape(', '.join(p['see']))})" for p in requirements.load()[1]]
    return "\n".join([
        HEAD, f"{count} requirements: {requirements.summary(verdicts)}.", *found, "",
        "## Citations", "",
        "The works that spec 004 section 5 cites, and what a search for each found. `standing` is",
        "that of the work found, or of the one used instead.", "",
        markdown.table(("", "title", "found", "standing", "identifier"),
                       map(requirements.citation_row, requirements.citations())), "",
        "## The Toyota Way", "",
        "The principles of spec 004 section 1, the decision that each led to, and where to see it.",
        "", *principles, ""])
