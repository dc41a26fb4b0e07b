"""Effects over several runs: where their level changed, and the figures that show it."""

from collections.abc import Sequence

from .evidence import Evidence
from .drawing.figure import Axis, Figure, Line, Rule, file_name
from .drawing.figures import LINES_MAX, group, middle, percentiles, plain
from .hdr import Histogram

SEGMENT_MIN = 2  # a single run that differs is an outlier, not a change


def change_points(values: list[float], tolerance: float) -> list[int]:
    """The indices at which a new level begins. It differs from the level before by more than the
    tolerance and by more than neighbours differ. A level is a median; the cuts minimise the sum of
    distances from the levels plus a price for each cut (Potts model, as in asv's step detection).
    """
    count = len(values)
    if count < 2 * SEGMENT_MIN:
        return []
    noise = middle([abs(b - a) for a, b in zip(values, values[1:])])
    price = 2.0 * max(tolerance, noise)

    def cost(begin: int, end: int) -> float:
        level = middle(values[begin:end])
        return sum(abs(value - level) for value in values[begin:end])

    best: list[tuple[float, list[int]]] = [(-price, [])] + [(float("inf"), [])] * count
    for end in range(SEGMENT_MIN, count + 1):
        for begin in range(0, end - SEGMENT_MIN + 1):
            before, cuts = best[begin]
            total = before + price + cost(begin, end)
            if total < best[end][0]:
                best[end] = (total, [*cuts, begin])
    cuts = best[count][1]
    found = []
    for place, begin in enumerate(cuts[1:], 1):
        end = cuts[place + 1] if place + 1 < len(cuts) else count
        step = middle(values[begin:end]) - middle(values[cuts[place - 1]:begin])
        if abs(step) > max(tolerance, 2.0 * noise):
            found.append(begin)
    return found


def effect_figure(runs: Sequence[Evidence], name: str, tolerance: float) -> Figure | None:
    """A claim's effect over the runs that measured it, with its interval and its changes."""
    rows = [(float(at), claim.result) for at, run in enumerate(runs, 1)
            if (claim := run.claim(name)) is not None and claim.result["effect"] is not None]
    if len(rows) < 2:
        return None
    x = [at for at, _ in rows]
    y = [float(row["effect"]) for _, row in rows]
    cuts = change_points(y, tolerance)
    last = rows[-1][1]
    lines = [Line("effect", x, y, 0, "line"), Line("", x, y, 0, "dots")]
    with_ends = [(at, row) for at, row in rows if None not in (row.get("low"), row.get("high"))]
    for end in ("low", "high"):
        lines.append(Line("interval" if end == "low" else "", [at for at, _ in with_ends],
                          [float(row[end]) for _, row in with_ends], 5))
    low, high = min(v for line in lines for v in line.y), max(v for line in lines for v in line.y)
    rules = [Rule(x[cut] - 0.5, "changed", upright=True) for cut in cuts]
    if abs(last["threshold"] - middle(y)) <= 3 * (high - low or abs(high) or 1.0):
        rules.append(Rule(last["threshold"], f"threshold {last['threshold']:g}", strong=True))
    changes = "; ".join(f"changed before run {x[cut]:g}" for cut in cuts) or "no change"
    marks = [(at, f"{at:g}") for at in x]
    title = last["title"] if len(last["title"]) <= 60 else last["title"][:59].rstrip() + "…"
    # An axis of counts begins at zero.
    floor = 0.0 if min(y) == 0 else None
    return Figure(file_name("trend", name), f"{name}: {title}",
                  f"Trend. {name} over {len(x)} runs, first {y[0]:.4g}, last {y[-1]:.4g} "
                  f"{last['unit']}; {changes}; threshold {last['threshold']:g}.",
                  Axis("run", ticks=marks), Axis(last["unit"], low=floor), lines, rules)


def series_figures(runs: Sequence[Evidence], name: str, merge: bool) -> list[Figure]:
    """For each series that several runs have: one curve per run, and one of all runs merged."""
    found: dict[tuple[str, str], list[tuple[str, Histogram]]] = {}
    for at, run in enumerate(runs, 1):
        claim = run.claim(name)
        for members in group(claim.series).values() if claim is not None else []:
            for _, one in members:
                found.setdefault((one.attack, one.name), []).append((f"run {at}", one.histogram))
    figures = []
    for (attack, series), curves in found.items():
        if len(curves) < 2 or max(h.total for _, h in curves) < 8:
            continue
        shown = curves[-(LINES_MAX - 1):]
        if merge:
            all_of_them = curves[0][1]
            for _, histogram in curves[1:]:
                all_of_them = all_of_them.merged(histogram)
            shown = [*shown, ("all runs", all_of_them)]
        figures.append(percentiles(file_name("runs", name, attack, series),
                                   f"{name} {plain(series)}: call latency", shown))
    return figures
