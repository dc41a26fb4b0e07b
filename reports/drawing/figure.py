"""Figures as data: numbers and text, without their drawing.

svg.py draws a figure as inline SVG, whose colours follow the reader's theme, and plots.py as PNG.
The text alternative is a field of the figure, so no figure can lack one.
"""

import math
from dataclasses import dataclass, field

# Okabe and Ito's palette, whose colours colour-blind people can distinguish too. Lines also differ
# in their dashes.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("", "6 3", "2 2", "8 3 2 3", "4 2", "1 2")
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
GIB = float(1 << 30)


@dataclass
class Line:
    """Points in order. kind: "line", "step" (level until the next point), "dots" or "bars"."""

    label: str
    x: list[float]
    y: list[float]
    colour: int = 0
    kind: str = "line"
    panel: int = 0


@dataclass
class Rule:
    """A straight line across a panel with a label at its end: a threshold, a median."""

    value: float
    label: str
    upright: bool = False
    strong: bool = False
    panel: int | None = None  # None: all of them


@dataclass
class Box:
    """From x0 to x1 in a lane: an interval, a block of memory, a running copy, a cell."""

    x0: float
    x1: float
    lane: int
    colour: int = 0
    label: str = ""
    shade: float = 1.0  # from 0, no colour, to 1
    text: str = ""      # in the middle of the box


@dataclass
class Axis:
    label: str = ""
    log: bool = False
    low: float | None = None
    high: float | None = None
    ticks: list[tuple[float, str]] | None = None
    nines: bool = False  # values are of nines(), and ticks name some of them

    @property
    def kind(self) -> str:
        """How a reader may draw further ticks."""
        return "nines" if self.nines else "fixed" if self.ticks is not None else \
            "log" if self.log else "linear"


@dataclass
class Figure:
    name: str   # of the file, unique in a report
    title: str
    alt: str    # text alternative
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    lines: list[Line] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    panels: list[str] = field(default_factory=lambda: [""])  # side by side, one y axis
    left: int = 58  # width of the y axis's labels, of 460

    def is_empty(self) -> bool:
        return not any(line.x for line in self.lines) and not self.boxes


def file_name(*words: str) -> str:
    text = "_".join(words)
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text)


def with_unit(nanoseconds: float) -> str:
    for scale, unit in UNITS:
        if abs(nanoseconds) >= scale:
            return f"{nanoseconds / scale:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def time_scale(nanoseconds: float) -> tuple[float, str]:
    return next((pair for pair in UNITS if nanoseconds >= pair[0]), UNITS[-1])


def nines(share: float) -> float:
    """1 at 90 %, 2 at 99 %, 3 at 99.9 %: a scale that shows the tail."""
    return -math.log10(max(1.0 - share, 1e-12))


def finite(values: list[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def span(figure: Figure, axis: str) -> tuple[float, float]:
    """The range of an axis: all values drawn along it, with a margin at both ends."""
    own = figure.x if axis == "x" else figure.y
    values = finite([v for line in figure.lines for v in getattr(line, axis)])
    values += [rule.value for rule in figure.rules if rule.upright == (axis == "x")]
    if axis == "x":
        values += [end for box in figure.boxes for end in (box.x0, box.x1)]
    elif figure.boxes:
        values += [box.lane + half for box in figure.boxes for half in (-0.5, 0.5)]
    if own.log:
        values = [value for value in values if value > 0]
    if not values:
        values = [0.5, 1.0]
    low, high = min(values), max(values)
    if own.log:
        room = (high / low) ** 0.04 if high > low else 2.0
        low, high = low / room, high * room
    else:
        room = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
        low, high = low - room, high + room
    return (low if own.low is None else own.low), (high if own.high is None else own.high)


def ticks(axis: Axis, low: float, high: float) -> list[tuple[float, str]]:
    """Four to eight round numbers between the ends."""
    if axis.ticks is not None:
        return [(value, text) for value, text in axis.ticks if low <= value <= high]
    if axis.log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        if last - first >= 1:
            step = max(1, (last - first) // 6 + 1)
            return [(10.0 ** n, f"{10.0 ** n:g}") for n in range(first, last + 1, step)]
        small = [m * 10.0 ** n for n in range(first - 1, last + 1) for m in (1, 2, 5)]
        return [(value, f"{value:g}") for value in small if low <= value <= high]
    step = 10.0 ** math.floor(math.log10((high - low) / 4)) if high > low else 1.0
    step = next((step * m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6), step * 10)
    begin = math.ceil(low / step)
    values = [round(n * step, 12) for n in range(begin, math.floor(high / step) + 1)]
    return [(value, f"{value:g}") for value in values]
