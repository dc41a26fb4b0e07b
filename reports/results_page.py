"""reports/RESULTS.md: the verdict of each claim, and the smallest faults its attacks noticed."""

import pathlib

from . import archive, code, evidence, limits, markdown, published_index, requirements, thresholds
from . import words
from .drawing import drawn
from .drawing.figure import Figure
from .evidence import Claim, Evidence

# The page shows the first two of these figures that published evidence has.
FIGURES = (("H12", "ratio"), ("H11", "percentiles"), ("H4", "blocks"), ("H3", "percentiles"))
HEADINGS = ("", "claim", "verdict", "effect", "survives if", "saboteurs detected", "device",
            "commit and day", "changed since")
UNPACKED_LIMITS = """\
No run of H1's detection limits has ended within its time, so no archive has them. The steps that
were tried are in [`steps.txt`](published/2026-11-28-h100-limits-h1/steps.txt) and
[`limits-h1-truncated.txt`](published/2026-11-28-h200-beside-peers/limits-h1-truncated.txt)."""


def read_published(folder: pathlib.Path = published_index.PUBLISHED) -> list[Evidence]:
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
    """The figures of the page."""
    latest, found = newest(runs), []
    for name, kind in FIGURES:
        if name in latest:
            figures = [figure for figure in drawn.of_claim(latest[name][1]).all()
                       if figure.name.startswith(f"{name}_{kind}")]
            found += figures[:1]
    return found[:2]


def since(run: Evidence, claim: str, now: dict[str, str]) -> str:
    """The parts of a claim's code that changed since a run; empty: none."""
    then = code.read(run.folder)
    if not then:
        return "not known"
    return ", ".join(code.changed(claim, then, now))


def caught(name: str, own: Claim, runs: list[Evidence]) -> str:
    """How many saboteurs were detected: in the run of the verdict, or else in the newest that
    ran them, which is then named."""
    for run in runs:
        claim = run.claim(name)
        if claim is not None and (claim is own or not own.result["severity"]):
            severity = claim.result["severity"]
            if severity:
                said = f"{severity['caught']} of {severity['of']}"
                return said if claim is own else f"{said} ({run_name(run)})"
    return "not run"


def run_name(run: Evidence) -> str:
    return f"{run.results['commit'][:7]}, {words.day(run)}"


def row(name: str, runs: list[Evidence], now: dict[str, str]) -> tuple[str, ...]:
    """A claim's row. A verdict of other code than today's is in brackets."""
    run, found = newest(runs)[name]
    changes = since(run, name, now)
    word = words.verdict(found)
    older = changes and name in code.PARTS
    return (name, found.result["title"], f"({word})" if older else word, words.effect(found),
            words.survives(found), caught(name, found, runs),
            run.results["device"]["name"].removeprefix("NVIDIA ").partition(" ")[0],
            run_name(run), changes or "nothing")


def counts(own: dict[str, str], older: int) -> str:
    numbers = {word: list(own.values()).count(word) for word in words.SIGNS}
    return (", ".join(f"{count} {word.replace('_', ' ')}" for word, count in numbers.items()) +
            ", from the newest published run of each claim. " + (
                "No claim's code has changed since." if not older else
                f"The code of {older} claims has changed since; their verdicts are in brackets."
                if older > 1 else
                "The code of one claim has changed since; its verdict is in brackets."))


def verdict_block(runs: list[Evidence]) -> str:
    """The table of H1 to H13, each with the verdict of the newest run that tested it."""
    latest, rows, own = newest(runs), [], {}
    now = code.digests(code.in_tree())
    for name, claim in thresholds.load()[0].items():
        own[name] = latest[name][1].result["verdict"] if name in latest else "not_tested"
        rows.append(row(name, runs, now) if name in latest else
                    (name, claim["title"], "not tested", *[""] * 6))
    older = sum(found[-1] not in ("nothing", "") for found in rows)
    return f"{counts(own, older)}\n\n{markdown.table(HEADINGS, rows)}"


def other_block(runs: list[Evidence]) -> str:
    """The same for claims that are not among H1 to H13."""
    names = sorted(set(newest(runs)) - set(thresholds.load()[0]))
    return markdown.table(HEADINGS[:-1], [row(name, runs, {})[:-1] for name in names])


def limits_block(runs: list[Evidence]) -> str:
    """The detection limits of the newest published run that measured those of each claim."""
    rows, used, first = [], {}, thresholds.load()[0]
    for name in (*first, *sorted({claim.id for run in runs for claim in run.claims} - set(first))):
        found = [(run, claim) for run in runs for claim in run.claims
                 if claim.id == name and claim.result.get("detection_limits")]
        for run, claim in found[:1]:
            used[id(run)] = run
            rows += limits.rows(claim)
    if not rows:
        return "No published run has measured them."
    return "\n".join([*map(run_line, used.values()), "", markdown.table(limits.HEADINGS, rows)])


def run_line(run: Evidence) -> str:
    name = run.folder.name
    return f"* {words.where(run)}: [`{name}`](published/{name})"


def page(runs: list[Evidence]) -> str:
    used = {id(run): run for run, _ in newest(runs).values()}
    figures = [f"![{markdown.escape(figure.alt)}](published/plots/{figure.name}.svg)"
               for figure in pick(runs)]
    return "\n".join([
        "# Results", "",
        "Written by `reports/written.py` from the [published evidence](published/INDEX.md).",
        "[Reading a report](READING.md) explains the words. *Survived* is no proof: the attacks",
        "found no violation. *Changed since* names the parts of a claim's code that differ from",
        "the code that ran; the verdict is then in brackets. Figures of speed are in",
        "[PERFORMANCE.md](../kernels/PERFORMANCE.md).", "",
        "## H1 to H13", "", verdict_block(runs), "", *figures, "",
        "## Claims beyond H1 to H13", "",
        "W: a model's decoding. S: sealed memory. P: copies between devices. Q: the order of",
        "work, the owners of blocks, and what is left over. For these claims",
        "nothing records whether their code has changed since.", "", other_block(runs), "",
        "## Runs", "", "The verdicts are of these runs:", "", *map(run_line, used.values()), "",
        "## Detection limits", "",
        "The smallest fault of each kind that the attacks of a claim noticed, and the next smaller",
        "one, which they did not notice.", "", limits_block(runs), "", UNPACKED_LIMITS, ""])
