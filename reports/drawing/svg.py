"""Figures as inline SVG: text stays text, and the page's style sets the colours."""

import math
from html import escape

from .figure import DASHES, Axis, Figure, Line, span, ticks

RIGHT, BOTTOM, GAP = 12, 42, 12
WIDTH, HEIGHT = 460, 280


def names(figure: Figure) -> list[tuple[float, float, Line]]:
    """The positions of the lines' names and marks, in rows under the title."""
    found: list[tuple[float, float, Line]] = []
    at, row, seen = 14.0, 27.0, set()
    for line in figure.lines:
        if not line.label or line.label in seen or not line.x:
            continue
        seen.add(line.label)
        wide = 34 + 5.6 * len(line.label)
        if at > 14 and at + wide > WIDTH:
            at, row = 14.0, row + 13
        found.append((at, row, line))
        at += wide
    return found


def top_of(figure: Figure) -> float:
    """The upper edge of the plot, below the title, the names and the panels' labels."""
    rows = names(figure)
    words = any(figure.panels) or any(rule.upright and rule.label for rule in figure.rules)
    return (rows[-1][1] + 8 if rows else 22.0) + (12 if words else 0)


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Panel:
    """One panel of a figure, and the positions of its values."""

    def __init__(self, figure: Figure, index: int) -> None:
        room = (WIDTH - figure.left - RIGHT - GAP * (len(figure.panels) - 1)) / len(figure.panels)
        self.left = figure.left + index * (room + GAP)
        self.right = self.left + room
        self.figure, self.index, self.top = figure, index, top_of(figure)
        self.x_span, self.y_span = span(figure, "x"), span(figure, "y")

    @staticmethod
    def share(axis: Axis, ends: tuple[float, float], value: float) -> float:
        low, high = ends
        if axis.log:
            if value <= 0:
                return 0.0
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0)

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * self.share(self.figure.x, self.x_span, value)

    def y(self, value: float) -> float:
        share = self.share(self.figure.y, self.y_span, value)
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - self.top) * share


def grid(panel: Panel) -> list[str]:
    figure, parts = panel.figure, []
    base = HEIGHT - BOTTOM
    texts = ticks(figure.x, *panel.x_span)
    free = 0.0  # the next label may begin here
    for value, text in texts:
        at = number(panel.x(value))
        parts.append(f'<path class="g" d="M{at} {panel.top}V{base}"/>')
        half = 2.8 * len(text)
        if panel.x(value) - half >= free:
            free = panel.x(value) + half + 3
            parts.append(f'<text class="tx" x="{at}" y="{base + 15}" text-anchor="middle">'
                         f"{escape(text)}</text>")
    for value, text in ticks(figure.y, *panel.y_span):
        at = panel.y(value)
        parts.append(f'<path class="g" d="M{number(panel.left)} {number(at)}'
                     f'H{number(panel.right)}"/>')
        if panel.index == 0:
            parts.append(f'<text class="ty" x="{figure.left - 6}" y="{number(at + 3.5)}" '
                         'text-anchor="end">'
                         f"{escape(text)}</text>")
    if figure.panels[panel.index]:
        middle = number((panel.left + panel.right) / 2)
        parts.append(f'<text x="{middle}" y="{panel.top - 5}" text-anchor="middle">'
                     f"{escape(figure.panels[panel.index])}</text>")
    return parts


def fine(value: float) -> str:
    """A place in data, which may be enlarged."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def path(line: Line, panel: Panel) -> str:
    """The points of a line as the data of an SVG path."""
    words, pen, before = [], False, 0.0
    for x, y in zip(line.x, line.y):
        if not (math.isfinite(x) and math.isfinite(y)):
            pen = False
            continue
        at_x, at_y = fine(panel.x(x)), fine(panel.y(y))
        if line.kind == "dots":
            words.append(f"M{at_x} {at_y}h0")
        elif line.kind == "bars":
            words.append(f"M{at_x} {HEIGHT - BOTTOM}V{at_y}")
        elif not pen:
            words.append(f"M{at_x} {at_y}")
        elif line.kind == "step":
            words.append(f"V{at_y}H{at_x}" if y != before else f"H{at_x}")
        else:
            words.append(f"L{at_x} {at_y}")
        pen, before = True, y
    return "".join(words)


def draw_lines(panel: Panel) -> list[str]:
    parts = []
    for line in panel.figure.lines:
        if line.panel != panel.index or not line.x:
            continue
        dash = DASHES[line.colour % len(DASHES)] if line.kind in ("line", "step") else ""
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        kind = {"dots": "d", "bars": "b"}.get(line.kind, "l")
        parts.append(f'<path class="{kind} c{line.colour % 6}"{extra} d="{path(line, panel)}"/>')
    return parts


def draw_boxes(panel: Panel) -> list[str]:
    parts = []
    for box in panel.figure.boxes:
        left, right = panel.x(box.x0), panel.x(box.x1)
        top, bottom = panel.y(box.lane + 0.38), panel.y(box.lane - 0.38)
        title = f"<title>{escape(box.label)}</title>" if box.label else ""
        shade = f' fill-opacity="{box.shade:.2f}"' if box.shade < 1 else ""
        parts.append(f'<rect class="f{box.colour % 6}"{shade} x="{number(left)}" '
                     f'y="{number(top)}" width="{max(right - left, 0.4):.2f}" '
                     f'height="{number(bottom - top)}">{title}</rect>')
        if box.text:
            parts.append(f'<text class="h" x="{number((left + right) / 2)}" '
                         f'y="{number((top + bottom) / 2 + 4)}" text-anchor="middle">'
                         f'{escape(box.text)}</text>')
    return parts


def draw_rules(panel: Panel) -> tuple[list[str], list[str]]:
    """The lines, and their labels."""
    parts, labels = [], []
    for rule in panel.figure.rules:
        if rule.panel is not None and rule.panel != panel.index:
            continue
        kind = "t" if rule.strong else "r"
        if rule.upright:
            at = number(panel.x(rule.value))
            parts.append(f'<path class="{kind}" d="M{at} {panel.top}V{HEIGHT - BOTTOM}"/>')
            side = (panel.x(rule.value) - panel.left) / (panel.right - panel.left)
            anchor = "start" if side < 0.2 else "end" if side > 0.8 else "middle"
            where = f'data-rule="x" x="{at}" y="{panel.top - 5}" text-anchor="{anchor}"'
        else:
            at = number(panel.y(rule.value))
            parts.append(f'<path class="{kind}" d="M{number(panel.left)} {at}'
                         f'H{number(panel.right)}"/>')
            where = f'data-rule="y" x="{number(panel.right - 3)}" ' \
                    f'y="{number(panel.y(rule.value) - 4)}" text-anchor="end"'
        if rule.label and (rule.panel is not None or panel.index == 0):
            labels.append(f'<text class="w" {where}>{escape(rule.label)}</text>')
    return parts, labels


def draw_panel(panel: Panel) -> str:
    """Grid, data and labels apart, with what zoom.js must know to draw them at another scale."""
    figure, base = panel.figure, HEIGHT - BOTTOM
    rules, labels = draw_rules(panel)
    axes = " ".join(f'data-{name}="{low!r} {high!r} {axis.kind}"' for name, axis, (low, high) in
                    (("x", figure.x, panel.x_span), ("y", figure.y, panel.y_span)))
    box = f"{number(panel.left)} {panel.top} {number(panel.right)} {base}"
    data = [*draw_boxes(panel), *draw_lines(panel), *rules]
    return (f'<g class="panel" data-box="{box}" {axes}><g class="grid">{"".join(grid(panel))}</g>'
            f'<g class="data">{"".join(data)}</g>{"".join(labels)}</g>')


def legend(figure: Figure) -> list[str]:
    parts = []
    for at, row, line in names(figure):
        dash = DASHES[line.colour % len(DASHES)] if line.kind in ("line", "step") else ""
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        dots = line.kind == "dots"
        mark = f"M{number(at + 9)} {row}h0" if dots else f"M{number(at)} {row}h18"
        parts.append(f'<path class="{"d" if dots else "l"} c{line.colour % 6}"{extra} d="{mark}"/>'
                     f'<text x="{number(at + 22)}" y="{row + 3.5}">{escape(line.label)}</text>')
    return parts


def draw(figure: Figure) -> str:
    """The figure as an <svg> element with a title, a label and no external reference."""
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(figure.alt)}">',
             f"<title>{escape(figure.alt)}</title>",
             f'<text class="h" x="14" y="13">{escape(figure.title)}</text>']
    for index in range(len(figure.panels)):
        parts.append(draw_panel(Panel(figure, index)))
    parts += legend(figure)
    middle = number((figure.left + WIDTH - RIGHT) / 2)
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">'
                 f"{escape(figure.x.label)}</text>")
    centre = number((top_of(figure) + HEIGHT - BOTTOM) / 2)
    parts.append(f'<text x="12" y="{centre}" text-anchor="middle" '
                 f'transform="rotate(-90 12 {centre})">{escape(figure.y.label)}</text></svg>')
    return "".join(parts)
