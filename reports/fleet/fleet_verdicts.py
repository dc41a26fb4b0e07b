"""What the runs of a fleet show together: one verdict per claim over all machines, spreads,
outliers, and how both changed from day to day.

A machine's verdict on a claim is falsified if any of its runs is; otherwise it is that of the
newest run that tested the claim. The fleet's verdict is falsified if a machine's is; otherwise
inconclusive if a machine's is; otherwise survived if a machine tested the claim.
"""

import collections
import datetime
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import change, thresholds, trend
from ..evidence import VERDICTS
from . import outliers
from .outliers import Outlier, Spread
from .taken import Run


@dataclass
class ClaimOfFleet:
    """A claim over all machines that had it."""

    id: str
    title: str
    rule: dict[str, Any]                  # unit, direction, threshold
    verdict: str
    machines: dict[str, list[str]]        # by verdict
    runs: int
    samples: int
    severity: tuple[int, int] | None      # saboteurs noticed, and all, over all runs
    reasons: list[tuple[str, str, str]]   # machine, path and reason of falsified and inconclusive
    effects: dict[str, float]             # by machine, median over its runs


@dataclass
class Measured:
    """A quantity over the machines of one group."""

    group: str
    name: str
    unit: str
    spread: Spread
    outliers: list[Outlier]
    values: dict[str, float] = field(repr=False, default_factory=dict)


@dataclass
class Day:
    """A claim on one day (UTC)."""

    claim: str
    day: str
    runs: dict[str, int]   # by verdict
    median: float | None   # of the effects
    changed: bool = False  # a new level of the effect begins


def worst(verdicts: Sequence[str]) -> str:
    """The fleet's verdict, from those of its machines."""
    order = ("falsified", "inconclusive", "survived")
    return next((one for one in order if one in verdicts), "not_tested")


def of_machine(rows: Sequence[dict[str, Any]]) -> str:
    """A machine's verdict, from those of its runs, oldest first."""
    verdicts = [row["verdict"] for row in rows]
    if "falsified" in verdicts:
        return "falsified"
    return next((one for one in reversed(verdicts) if one != "not_tested"), "not_tested")


def order(names: Sequence[str]) -> list[str]:
    """This repository's claims, and then those of plugins."""
    own = [name for name in thresholds.load()[0] if name in names]
    return [*own, *(name for name in dict.fromkeys(names) if name not in own)]


def median_effects(runs: Sequence[Run], name: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for run in runs:
        if name in run.claims and run.claims[name]["effect"] is not None:
            found.setdefault(run.machine, []).append(float(run.claims[name]["effect"]))
    return {machine: statistics.median(values) for machine, values in found.items()}


def of_claim(runs: Sequence[Run], name: str) -> ClaimOfFleet:
    """runs: oldest first. Title and threshold are those of the newest."""
    rows: dict[str, list[dict[str, Any]]] = {}
    reasons, caught, of, samples, count = [], 0, 0, 0, 0
    for run in (run for run in runs if name in run.claims):
        row = run.claims[name]
        rows.setdefault(run.machine, []).append(row)
        samples += row["samples"]
        count += row["verdict"] != "not_tested"
        if row["verdict"] in ("falsified", "inconclusive"):
            reasons.append((run.machine, run.path, str(row["reason"] or "")))
        if row["severity"]:
            caught, of = caught + row["severity"]["caught"], of + row["severity"]["of"]
    machines: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for machine, own in rows.items():
        machines[of_machine(own)].append(machine)
    newest = next(run.claims[name] for run in reversed(runs) if name in run.claims)
    verdict = worst([verdict for verdict, named in machines.items() if named])
    return ClaimOfFleet(name, newest["title"],
                        {key: newest[key] for key in ("unit", "direction", "threshold")}, verdict,
                        machines, count, samples, (caught, of) if of else None,
                        [row for row in reasons if row[0] in machines["falsified"] or
                         row[0] in machines["inconclusive"]], median_effects(runs, name))


def of_claims(runs: Sequence[Run]) -> list[ClaimOfFleet]:
    names = order([name for run in runs for name in run.claims])
    return [of_claim(runs, name) for name in names]


def group_names(runs: Sequence[Run]) -> dict[tuple[str, ...], str]:
    """A name for each group, of what differs among them: the device at least."""
    groups = list(dict.fromkeys(run.group for run in runs))
    differ = [at for at in range(1, 6) if at == 1 or len({group[at] for group in groups}) > 1]
    return {group: ", ".join(filter(None, (group[at][:12] if at == 3 else group[at]
                                           for at in differ))) for group in groups}


def measured(runs: Sequence[Run]) -> list[Measured]:
    """Each quantity of each group. The rule's rate of false alarms is over all of them."""
    names = group_names(runs)
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in runs:
        for name, value in run.quantities.items():
            found.setdefault((names[run.group], name), {}).setdefault(run.machine,
                                                                      []).append(value)
    result = []
    for (group, name), machines in found.items():
        values = {machine: statistics.median(own) for machine, own in machines.items()}
        what, _, unit = name.rpartition(", ")
        worth = change.tolerance_of(name.split()[0]) if what.endswith(" effect") else None
        spread, named = outliers.find(values, len(found), worth or None)
        result.append(Measured(group, what, unit, spread, named, values))
    return result


def by_machine(all_of_them: Sequence[Measured]) -> dict[str, list[tuple[Measured, Outlier]]]:
    """The outliers of each machine that has any: most quantities first, the largest first."""
    found: dict[str, list[tuple[Measured, Outlier]]] = collections.defaultdict(list)
    for one in all_of_them:
        for outlier in one.outliers:
            found[outlier.machine].append((one, outlier))
    for rows in found.values():
        rows.sort(key=lambda row: -abs(row[1].deviations))
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def day_of(run: Run) -> str:
    return datetime.datetime.fromtimestamp(run.begin_s, datetime.timezone.utc).date().isoformat()


def days(runs: Sequence[Run]) -> list[Day]:
    """Each claim on each day; empty if all runs are of one day."""
    dates = sorted({day_of(run) for run in runs})
    found: list[Day] = []
    if len(dates) < 2:
        return found
    for name in order([name for run in runs for name in run.claims]):
        own = []
        for date in dates:
            rows = [run.claims[name] for run in runs if day_of(run) == date and name in run.claims]
            effects = [row["effect"] for row in rows if row["effect"] is not None]
            if rows:
                own.append(Day(name, date, {verdict: sum(row["verdict"] == verdict for row in rows)
                                            for verdict in VERDICTS},
                               statistics.median(effects) if effects else None))
        told = [one for one in own if one.median is not None]
        levels = [one.median for one in told if one.median is not None]
        for at in trend.change_points(levels, change.tolerance_of(name) or 0.0):
            told[at].changed = True
        found += own
    return found
