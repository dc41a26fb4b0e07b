"""The figures of one claim: latencies as percentile curves, comparisons as blocks over time next to
their control, measured values with their threshold. memory_figures.py has the figures of pools,
streams and errors.
"""

import re

from ..evidence import Claim, Series
from .heat_maps import is_of_pair
from .figure import Axis, Figure, Line, Rule, file_name, nines, time_scale, with_unit
from ..hdr import Histogram
from ..tables import Blocks
from ..words import counted, unit_of

MARKS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
LINES_MAX = 6
LANES_MAX = 12
LABEL_MAX = 34
CALLS_MIN = 8  # with fewer calls a table is enough
SIDES = {"driver", "runtime", "cxx", "baseline", "subject", "pool", "soft", "cuda"}


def plain(text: str) -> str:
    return text.replace("_", " ")


def shortened(text: str) -> str:
    """A name that fits beside a figure. Names differ at the end as often as at the beginning, so
    the middle is left out."""
    return text if len(text) <= LABEL_MAX else f"{text[:16]}…{text[17 - LABEL_MAX:]}"


def percentile_curve(histogram: Histogram) -> tuple[list[float], list[float]]:
    """Steps: x in nines, y in nanoseconds. 100 % would be at infinity, so the largest value is
    drawn half a call before it."""
    shares, values = histogram.curve()
    last = nines(1 - 0.5 / histogram.total)
    return [nines(share) if share < 1 else last for share in shares], [float(v) for v in values]


def percentiles(name: str, title: str, curves: list[tuple[str, Histogram]]) -> Figure:
    """Percentile curves over -log10(1 - p), so that each further nine is equally wide."""
    curves = [(label, histogram) for label, histogram in curves if histogram.total > 0]
    scale, unit = time_scale(max((h.percentile(50) for _, h in curves), default=1))
    lines, last, top = [], 1.0, 0.0
    for index, (label, histogram) in enumerate(curves):
        x, y = percentile_curve(histogram)
        last, top = max(last, x[-1]), max(top, y[-1])
        lines.append(Line(label, [0.0, *x], [y[0] / scale, *(v / scale for v in y)], index, "step"))
    ends = [line.y[0] for line in lines]
    marks = [(0.0, "0 %"), *((nines(m), f"{m * 100:g} %") for m in MARKS if nines(m) <= last)]
    log = bool(ends) and top / scale > 30 * max(min(ends), 1e-9)
    calls = ", ".join(f"{label}: {counted(h.total, 'calls')}, p50 {with_unit(h.percentile(50))}, "
                      f"p99 {with_unit(h.percentile(99))}, max {with_unit(h.maximum)}"
                      for label, h in curves)
    return Figure(name, title, f"Percentile curves. {title}. {calls}.",
                  Axis("percentile of calls, stretched towards 100 %", ticks=marks, low=0.0,
                       nines=True),
                  Axis(unit, log=log, low=None if log else 0.0), lines)


def group(series: list[Series]) -> dict[tuple[str, str], list[tuple[str, Series]]]:
    """Which series share a figure: the two sides of a comparison, the variants at one size, or one
    series measured by several attacks."""
    groups: dict[tuple[str, str], list[tuple[str, Series]]] = {}
    repeated = [s.name for s in series]
    for one in series:
        head, _, tail = one.name.rpartition("_")
        if head and tail in SIDES:
            key, label = (one.attack, head), tail
        elif head and re.fullmatch(r"\d+B", tail):
            key, label = (one.attack, tail), plain(head)
        elif repeated.count(one.name) > 1:
            key, label = ("", one.name), plain(one.attack)[:34]
        else:
            key, label = (one.attack, one.name), plain(one.name)
        groups.setdefault(key, []).append((label, one))
    return groups


def of_series(claim: Claim) -> list[Figure]:
    figures = []
    for (attack, name), members in group(claim.series).items():
        for at in range(0, len(members), LINES_MAX):
            part = members[at:at + LINES_MAX]
            if max(one.histogram.total for _, one in part) < CALLS_MIN:
                continue
            processes = max(one.processes for _, one in part)
            merged = f", {processes} processes merged" if processes > 1 else ""
            more = f"_{at}" if at else ""
            figures.append(percentiles(
                file_name(claim.id, "percentiles", attack, name + more),
                f"{claim.id} {plain(name)}: call latency{merged}",
                [(label, one.histogram) for label, one in part]))
    return figures


def middle(values: list[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def blocks_figure(claim: Claim, parts: list[Blocks], threshold: float, judged: bool) -> Figure:
    """Block effects in the order of measurement, next to those of the control: A/B and A/A."""
    name, unit = parts[0].name, claim.result["unit"]
    effects = [value for part in parts for value in part.effects]
    controls = [value for part in parts for value in part.controls]
    both = sorted([*effects, *controls])
    low, high = both[len(both) // 100], both[-1 - len(both) // 100]
    room = (high - low or abs(high) or 1.0) * 0.15
    low, high = low - room, high + room
    near = low - (high - low) <= threshold <= high + (high - low)
    if near:
        low, high = min(low, threshold - room / 2), max(high, threshold + room / 2)
    x = [float(n + 1) for n in range(len(effects))]
    rules = [Rule(middle(effects), f"median {middle(effects):.4g}", panel=0),
             Rule(middle(controls), f"median {middle(controls):.4g}", panel=1)]
    if near:
        rules.append(Rule(threshold, f"threshold {threshold:g}", strong=True, panel=0))
    where = "" if near else f"; threshold {threshold:g} off the axis"
    runs = f" in {len(parts)} processes" if len(parts) > 1 else ""
    return Figure(
        file_name(claim.id, "blocks", parts[0].attack, name),
        f"{claim.id} {plain(name)}: blocks{runs}{where}",
        f"Block effects of {plain(name)} over time, with the control. "
        f"{counted(len(effects), 'blocks')}, "
        f"median {middle(effects):.4g} {unit_of(middle(effects), unit)}; "
        f"control median {middle(controls):.4g}, "
        f"threshold {threshold:g}{'' if judged else '; not used for the verdict'}"
        ". Blocks outside the axis are drawn at its ends.",
        Axis("block"), Axis(unit, low=low, high=high),
        [Line("", x, effects, 0, "dots", 0), Line("", x, controls, 1, "dots", 1)], rules,
        panels=["subject vs. baseline", "control: baseline vs. itself"])


def of_blocks(claim: Claim) -> list[tuple[bool, Figure]]:
    """Each figure, and whether the verdict depends on it."""
    by_name = {(e["attack"], e["name"]): e for e in claim.effects}
    found: dict[tuple[str, str], list[Blocks]] = {}
    for blocks in claim.tables.blocks:
        found.setdefault((blocks.attack, blocks.name), []).append(blocks)
    figures = []
    for key, parts in found.items():
        effect = by_name.get(key, {})
        judged = not effect.get("recorded_only", True)
        threshold = effect.get("threshold", claim.result["threshold"])
        figures.append((judged, blocks_figure(claim, parts, threshold, judged)))
    return figures


def of_measures(claim: Claim) -> list[Figure]:
    """A dot for each measured value, a lane for each kind of value, and the threshold."""
    recorded = [m for m in claim.measures if m["recorded_only"] and not is_of_pair(m)]
    shown = [m for m in claim.measures if not m["recorded_only"]]
    shown += recorded if len(recorded) <= 3 else []
    lanes: dict[str, list[float]] = {}
    for measure in shown:
        if measure["value"] is not None:
            lane = re.sub(r",? (seed|walk) \d+", "", measure["name"])
            lanes.setdefault(lane, []).append(float(measure["value"]))
    if not lanes:
        return []
    figures, names = [], list(lanes)
    count = -(-len(names) // LANES_MAX)
    for number in range(count):
        # Equally many lanes in each: a figure of two lanes would be mostly empty.
        at = number * len(names) // count
        part = names[at:(number + 1) * len(names) // count]
        values = [v for name in part for v in lanes[name]]
        threshold, unit = claim.result["threshold"], claim.result["unit"]
        positive = [v for v in [*values, threshold] if v > 0]
        log = len(positive) > 1 and max(positive) > 30 * min(positive)
        texts = [(float(-i), shortened(name)) for i, name in enumerate(part)]
        of = f" ({number + 1} of {count})" if count > 1 else ""
        lines = [Line("", lanes[name], [float(-i)] * len(lanes[name]), 0, "dots")
                 for i, name in enumerate(part)]
        most = "; ".join(f"{n}: {min(lanes[n]):.4g} to {max(lanes[n]):.4g}" for n in part)
        figures.append(Figure(
            file_name(claim.id, "measures", str(at)),
            f"{claim.id}: measured values, in {unit}{of}",
            f"Measured values with the threshold of {threshold:g} {unit}. {most}.",
            Axis(unit, log=log), Axis("", ticks=texts, low=0.6 - len(part), high=0.6), lines,
            [Rule(threshold, f"threshold {threshold:g}", upright=True, strong=True)], left=190))
    return figures
