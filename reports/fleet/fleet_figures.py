"""The figures of a merge: a quantity over the machines, a claim's effect over days, and the latency
of all machines' calls together."""

from collections.abc import Sequence

from ..drawing.figure import Axis, Figure, Line, Rule, file_name, time_scale
from ..drawing.figures import LINES_MAX, group, percentiles, plain
from ..evidence import Claim, Series
from .fleet_verdicts import ClaimOfFleet, Day, Measured
from .merging import Fleet

FIGURES_MAX = 12  # of quantities: more is for merge.json


def scaled(unit: str, values: Sequence[float]) -> tuple[float, str]:
    return time_scale(max(values)) if unit == "ns" else (1.0, unit)


def over_machines(one: Measured) -> Figure:
    """Machines in the order of their numbers; those that are out of line in another colour."""
    out = {outlier.machine for outlier in one.outliers}
    ordered = sorted(one.values.items(), key=lambda item: item[1])
    scale, unit = scaled(one.unit, [value for _, value in ordered])
    lines = []
    for label, colour, chosen in (("", 0, False), ("out of line", 1, True)):
        dots = [(float(at), value / scale) for at, (machine, value) in enumerate(ordered, 1)
                if (machine in out) == chosen]
        lines.append(Line(label, [x for x, _ in dots], [y for _, y in dots], colour, "dots"))
    middle = one.spread.median / scale
    named = ", ".join(outlier.machine for outlier in one.outliers[:8]) or "none"
    return Figure(file_name("machines", one.group, one.name), f"{plain(one.name)}: {one.group}",
                  f"One point per machine. {plain(one.name)} of {one.spread.machines} machines, "
                  f"{one.spread.low / scale:.4g} to {one.spread.high / scale:.4g} {unit}, median "
                  f"{middle:.4g}; out of line: {named}.",
                  Axis("machine, in the order of its number"), Axis(unit),
                  [line for line in lines if line.x], [Rule(middle, f"median {middle:.4g}")])


def of_machines(all_of_them: Sequence[Measured]) -> list[Figure]:
    """Quantities with machines out of line first, and then effects."""
    chosen = [one for one in all_of_them if one.outliers]
    chosen += [one for one in all_of_them if not one.outliers and one.name.endswith(" effect")]
    return [over_machines(one) for one in chosen[:FIGURES_MAX] if one.spread.machines > 1]


def over_days(claims: Sequence[ClaimOfFleet], days: Sequence[Day]) -> list[Figure]:
    figures = []
    for claim in claims:
        own = [(day, day.median) for day in days
               if day.claim == claim.id and day.median is not None]
        if len(own) < 2:
            continue
        x, y = [float(at) for at in range(1, len(own) + 1)], [median for _, median in own]
        marks = [(at, day.day[5:]) for at, (day, _) in zip(x, own)]
        rules = [Rule(at - 0.5, "changed", upright=True) for at, (day, _) in zip(x, own)
                 if day.changed]
        changes = ", ".join(day.day for day, _ in own if day.changed) or "no change"
        figures.append(Figure(
            file_name("days", claim.id), f"{claim.id}: median of all runs of a day",
            f"Trend. {claim.id} over {len(own)} days, {own[0][0].day} to {own[-1][0].day}, first "
            f"{y[0]:.4g}, last {y[-1]:.4g} {claim.rule['unit']}; changed: {changes}.",
            Axis("day (UTC)", ticks=marks[::len(marks) // 6 + 1]),
            Axis(claim.rule["unit"], low=0.0 if min(y) == 0 else None),
            [Line("", x, y, 0, "line"), Line("", x, y, 0, "dots")], rules))
    return figures


def latencies(fleet: Fleet, names: dict[tuple[str, ...], str]) -> list[Figure]:
    """The merged histograms, in the figures that a report of one run has."""
    found: dict[tuple[str, str], list[Series]] = {}
    for (whole, (claim, attack, name)), histogram in fleet.histograms.items():
        found.setdefault((names[whole], claim), []).append(Series(claim, attack, name, histogram))
    figures = []
    for (title, claim), series in found.items():
        for (attack, name), members in group(Claim({"id": claim}, {}, [], series=series).series
                                             ).items():
            for at in range(0, len(members), LINES_MAX):
                part = members[at:at + LINES_MAX]
                if max(one.histogram.total for _, one in part) >= 8:
                    figures.append(percentiles(
                        file_name("fleet", title, claim, attack, name, str(at)),
                        f"{claim} {plain(name)}: call latency, all of {title}",
                        [(label, one.histogram) for label, one in part]))
    return figures
