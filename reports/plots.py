"""Plots: one picture for each recorded series and each walk over a pool."""

import math
import pathlib

import matplotlib

matplotlib.use("Agg")  # no window: this runs on servers
from matplotlib import pyplot, ticker  # noqa: E402

from reports.evidence import Series  # noqa: E402
from reports.hdr import Histogram  # noqa: E402
from reports.walks import Walk  # noqa: E402

UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
GIB = float(1 << 30)
MARKS = (0.5, 0.9, 0.99, 0.999, 0.9999)


def with_unit(nanoseconds: float) -> str:
    for scale, unit in UNITS:
        if nanoseconds >= scale:
            return f"{nanoseconds / scale:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def nines(share: float) -> float:
    """1 at 90 %, 2 at 99 %, 3 at 99.9 %: what makes a tail visible."""
    return -math.log10(max(1.0 - share, 1e-12))


def percentile_curve(histogram: Histogram) -> tuple[list[float], list[float]]:
    """Steps: x in nines, y in nanoseconds. The largest value stands where the last but one ends,
    plus a bit, since 100 % lies at infinity."""
    shares, values = histogram.curve()
    last = nines(1 - 0.5 / histogram.total)
    return [nines(share) if share < 1 else last for share in shares], [float(v) for v in values]


def draw(series: Series, path: pathlib.Path) -> None:
    histogram = series.histogram
    x, y = percentile_curve(histogram)
    scale, unit = next((pair for pair in UNITS if histogram.percentile(50) >= pair[0]), UNITS[-1])
    figure, axes = pyplot.subplots(figsize=(6, 3.2), dpi=130)
    axes.step([0.0, *x], [y[0] / scale, *(value / scale for value in y)], where="pre",
              color="#1f6feb", linewidth=1.6)
    if y[-1] > 30 * max(y[0], 1.0):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.set_ylim(0, y[-1] / scale * 1.15)
    marks = [mark for mark in MARKS if nines(mark) <= x[-1]]
    axes.set_xticks([0.0, *(nines(mark) for mark in marks)],
                    ["0 %", *(f"{mark * 100:g} %" for mark in marks)])
    # The curve rises: left of p99 the room above it is free, right of p50 the room below it.
    for percent, colour, left in ((50, "#57606a", False), (99, "#bc4c00", True)):
        value = histogram.percentile(percent)
        axes.axhline(value / scale, color=colour, linewidth=0.8, linestyle=":")
        axes.annotate(f"p{percent} {with_unit(value)}", (0.01 if left else 0.99, value / scale),
                      xycoords=("axes fraction", "data"), xytext=(0, 3 if left else -3),
                      textcoords="offset points", ha="left" if left else "right",
                      va="bottom" if left else "top", fontsize=8, color=colour)
    axes.set_xlabel("share of calls")
    axes.set_ylabel(unit)
    axes.set_title(f"{series.claim} {series.name.replace('_', ' ')}\n"
                   f"{series.attack.replace('_', ' ')}: {histogram.total} calls, "
                   f"max {with_unit(histogram.maximum)}", fontsize=9)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    pyplot.close(figure)


def draw_all(series: list[Series], folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for one in series:
        if one.histogram.total > 0:
            draw(one, folder / one.file_name)


def draw_walk(walk: Walk, path: pathlib.Path) -> None:
    steps = [row["step"] for row in walk.rows]
    figure, axes = pyplot.subplots(figsize=(6, 3.2), dpi=130)
    axes.plot(steps, [row["held"] / GIB for row in walk.rows], color="#bc4c00", linewidth=1.2,
              label="held")
    axes.plot(steps, [row["requested"] / GIB for row in walk.rows], color="#1f6feb", linewidth=1.2,
              label="requested")
    axes.set_xlabel("step")
    axes.set_ylabel("GiB")
    axes.set_ylim(bottom=0)
    axes.legend(loc="center right", fontsize=8)
    beside = axes.twinx()
    beside.plot(steps, walk.ratios(0.05), color="#57606a", linewidth=0.7)
    beside.set_ylabel("held to requested")
    axes.set_title(f"{walk.claim} {walk.attack.replace('_', ' ')}: {walk.name.replace('_', ' ')}",
                   fontsize=9)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    pyplot.close(figure)
