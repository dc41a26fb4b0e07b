"""The page of a merge, and the same as Markdown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from .. import markdown, parts, summary, words
from ..drawing.figure import Figure, with_unit
from ..evidence import VERDICTS
from . import fleet_figures, outliers
from .fleet_verdicts import ClaimOfFleet, Day, Measured, by_machine, group_names
from .merging import Fleet

CLAIMS = ("", "claim", "verdict", "machines", "effect", "survives if", "severity", "runs",
          "samples")
OUT = ("machine", "quantities", "the furthest", "its number", "median", "distance")
SPREADS = ("quantity", "device", "machines", "smallest", "median", "largest", "deviation",
           "limit")
DAYS = ("claim", "day", *(verdict.replace("_", " ") for verdict in VERDICTS), "median effect")
REASONS = ("claim", "machine", "reason", "evidence")
ROWS_MAX = 200  # of a table; merge.json has all


@dataclass
class Merged:
    """All that a page shows."""

    fleet: Fleet
    claims: list[ClaimOfFleet]
    measured: list[Measured]
    days: list[Day]
    mixed: str  # why the runs are not of one kind, where that was allowed

    @property
    def machines(self) -> list[str]:
        return list(dict.fromkeys(run.machine for run in self.fleet.runs))


def sentence(merged: Merged) -> str:
    fallen = [claim.id for claim in merged.claims if claim.verdict == "falsified"]
    what = f"{words.counted(len(merged.fleet.runs), 'runs')} of " \
           f"{words.counted(len(merged.machines), 'machines')}"
    named = len(by_machine(merged.measured))
    out = f"; {words.counted(named, 'machines')} out of line" if named else ""
    if fallen:
        return f"{what}: {summary.listed(fallen)} falsified{out}"
    counts = [sum(claim.verdict == verdict for claim in merged.claims) for verdict in VERDICTS]
    return f"{what}: " + ", ".join(f"{count} {verdict.replace('_', ' ')}"
                                   for count, verdict in zip(counts, VERDICTS) if count) + out


def amount(value: float, unit: str) -> str:
    return with_unit(value) if unit == "ns" else f"{value:.4g} {words.unit_of(value, unit)}"


def counts(claim: ClaimOfFleet) -> str:
    """"61 survived, 3 not tested"."""
    return ", ".join(f"{len(named)} {verdict.replace('_', ' ')}"
                     for verdict, named in claim.machines.items() if named)


def claim_cells(claim: ClaimOfFleet) -> list[str]:
    unit, effect = claim.rule["unit"], ""
    if claim.effects:
        low, high = min(claim.effects.values()), max(claim.effects.values())
        effect = amount(high, unit) if low == high else f"{low:.4g} to {amount(high, unit)}"
    severity = "" if claim.severity is None else f"{claim.severity[0]} of {claim.severity[1]}"
    limit = amount(claim.rule["threshold"], unit)
    return [claim.id, claim.title, claim.verdict.replace("_", " "), counts(claim), effect,
            f"{words.DIRECTIONS[claim.rule['direction']]} {limit}", severity, str(claim.runs),
            str(claim.samples)]


def reason_rows(merged: Merged) -> list[list[str]]:
    return [[claim.id, machine, reason[:300], path] for claim in merged.claims
            for machine, path, reason in claim.reasons]


def distance(one: Measured, value: float) -> str:
    if one.spread.relative:
        return f"{100 * (value / one.spread.median - 1):+.1f} %"
    return f"{value - one.spread.median:+.4g} {one.unit}"


def outlier_rows(merged: Merged) -> list[list[str]]:
    rows = []
    for machine, found in by_machine(merged.measured).items():
        one, worst = found[0]
        of = sum(machine in each.values for each in merged.measured)
        rows.append([machine, f"{len(found)} of {of}", one.name, amount(worst.value, one.unit),
                     amount(one.spread.median, one.unit),
                     f"{distance(one, worst.value)}, {abs(worst.deviations):.0f} deviations"])
    return rows


def spread_rows(merged: Merged) -> list[list[str]]:
    rows = []
    for one in merged.measured:
        spread = one.spread
        scale = f"{100 * spread.scale:.2g} %" if spread.relative else f"{spread.scale:.3g}"
        limit = f"{spread.limit:.3g}" if spread.machines >= outliers.MACHINES_MIN else "too few"
        rows.append([one.name, one.group, str(spread.machines),
                     *(amount(value, one.unit) for value in (spread.low, spread.median,
                                                             spread.high)), scale, limit])
    return rows


def day_rows(merged: Merged) -> list[list[str]]:
    return [[day.claim, day.day, *(str(day.runs[verdict]) for verdict in VERDICTS),
             "" if day.median is None else f"{day.median:.4g}" + ", a new level" * day.changed]
            for day in merged.days]


RULE = (f"A machine is out of line if its number is further from the fleet's median than the "
        f"limit, in robust standard deviations, and by {outliers.WORTH:.0%} or the claim's "
        f"tolerance. The rule names a machine in at most {outliers.ALARMS:.0%} of healthy fleets, "
        f"as simulations show; it needs {outliers.MACHINES_MIN} machines.")
LEFT = "No number on this page includes what is missing or was refused."


def left_out(merged: Merged) -> list[str]:
    fleet = merged.fleet
    return [*(f"missing: {path}" for path in fleet.missing),
            *(f"refused: {reason}" for _, reason in fleet.refused),
            *(f"counted once: {path} has the same files as {first}"
              for path, first in fleet.duplicates)]


def notes(merged: Merged) -> list[str]:
    found = []
    if merged.fleet.missing or merged.fleet.refused:
        found.append(f"{len(merged.fleet.missing)} missing, {len(merged.fleet.refused)} refused. "
                     + LEFT)
    if merged.mixed:
        found.append(f"Merged because of --mixed, though {merged.mixed}. Numbers are compared and "
                     "histograms added only among runs of one kind.")
    if any(run.kind == "soft" for run in merged.fleet.runs):
        found.append(words.SOFT_NOTE)
    return found


def sections(merged: Merged) -> list[tuple[str, str, Sequence[str], list[list[str]], int]]:
    """Heading, text, the table's headings and rows, and from which column on are numbers."""
    found = [("Verdicts that need a look", "", REASONS, reason_rows(merged), 99),
             ("Machines out of line", RULE, OUT, outlier_rows(merged), 99),
             ("Spread between machines", "", SPREADS, spread_rows(merged), 2),
             ("Day by day", "", DAYS, day_rows(merged), 2)]
    return [one for one in found if one[3] or one[0] == "Machines out of line"]


def cut(rows: list[list[str]]) -> str:
    if len(rows) <= ROWS_MAX:
        return ""
    return f"The first {ROWS_MAX} of {len(rows)}; merge.json has all."


def claims_table(merged: Merged) -> str:
    rows = []
    for claim in merged.claims:
        cells = [escape(cell) for cell in claim_cells(claim)]
        cells[0] = f"<b>{cells[0]}</b>"
        cells[2] = (f'<b class="verdict {claim.verdict}">{words.SIGNS[claim.verdict]} '
                    f"{cells[2]}</b>")
        rows.append(parts.row(("", "", *CLAIMS[2:]), cells))
    return parts.stacked("verdicts", CLAIMS, rows)


def render(merged: Merged) -> tuple[str, str, list[Figure]]:
    """The page, the Markdown, and the figures."""
    names = group_names(merged.fleet.runs)
    drawn = {"Machines out of line": fleet_figures.of_machines(merged.measured),
             "Day by day": fleet_figures.over_days(merged.claims, merged.days)}
    latency = fleet_figures.latencies(merged.fleet, names)
    heading = sentence(merged)
    html = [f"{parts.BRAND}<h1>{escape(heading)}</h1>",
            *(f'<p class="note">{escape(note)}</p>' for note in notes(merged)),
            claims_table(merged)]
    text = [f"# {markdown.escape(heading)}", "",
            *(line for note in notes(merged) for line in (markdown.escape(note), "")),
            markdown.table(CLAIMS, map(claim_cells, merged.claims)), ""]
    for title, said, headings, rows, numbers in sections(merged):
        told: Iterable[str] = filter(None, (said, "None." if not rows else "", cut(rows)))
        told = list(told)
        html.append(f"<h2>{title}</h2>" + "".join(f'<p class="note">{escape(one)}</p>'
                                                  for one in told))
        text += [f"## {title}", "", *(line for one in told
                                      for line in (markdown.escape(one), ""))]
        if rows:
            html.append(parts.plain_table(headings, rows[:ROWS_MAX], numbers))
            text += [markdown.table(headings, rows[:ROWS_MAX]), ""]
        html.append(parts.figures(drawn.get(title, [])))
        text += markdown.pictures(drawn.get(title, []), "")
    lines = left_out(merged)
    if lines:
        html.append("<h2>Left out</h2><ul>" + "".join(f"<li>{escape(one)}</li>"
                                                      for one in lines) + "</ul>")
        text += ["## Left out", "", *(f"* {markdown.escape(one)}" for one in lines), ""]
    html.append(parts.folded("Call latency of all machines, added up", parts.figures(latency)))
    text += markdown.pictures(latency, "")
    figures = [figure for some in drawn.values() for figure in some] + latency
    return (parts.whole(f"Tollens: {heading}", "\n".join(html)), "\n".join(text) + "\n", figures)
