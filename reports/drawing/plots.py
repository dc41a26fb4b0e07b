"""Figures as PNG files, for viewers without SVG: mail, Markdown in a terminal."""

import pathlib
import textwrap
from collections.abc import Iterable

import matplotlib

matplotlib.use("Agg")  # no window: this runs on servers
from matplotlib import pyplot  # noqa: E402

from .figure import COLOURS, Figure, Line, Rule, span, ticks  # noqa: E402

STYLES = ("-", "--", ":", "-.", (0, (4, 2)), (0, (1, 2)))


def draw_line(axes: "pyplot.Axes", line: Line) -> None:
    colour = COLOURS[line.colour % len(COLOURS)]
    label = line.label or None
    if line.kind == "dots":
        axes.plot(line.x, line.y, ".", color=colour, markersize=3, label=label)
    elif line.kind == "bars":
        axes.vlines(line.x, 0, line.y, color=colour, linewidth=4, label=label)
    else:
        style = STYLES[line.colour % len(STYLES)]
        steps = "steps-pre" if line.kind == "step" else "default"
        axes.plot(line.x, line.y, color=colour, linewidth=1.4, label=label, linestyle=style,
                  drawstyle=steps)


def draw_rule(axes: "pyplot.Axes", rule: Rule, name: bool) -> None:
    colour, style = ("#24292f", "--") if rule.strong else ("#6e7781", ":")
    straight = axes.axvline if rule.upright else axes.axhline
    straight(rule.value, color=colour, linewidth=1.0, linestyle=style)
    if not name:
        return
    if rule.upright:
        low, high = axes.get_xlim()
        near_end = rule.value > (low * high ** 4) ** 0.2 if low > 0 else rule.value > 0.8 * high
        axes.annotate(rule.label, (rule.value, 1), xycoords=("data", "axes fraction"), fontsize=7,
                      ha="right" if near_end else "center", va="bottom")
    else:
        axes.annotate(rule.label, (0.99, rule.value), xycoords=("axes fraction", "data"),
                      fontsize=7, ha="right", va="bottom")


def draw(figure: Figure, path: pathlib.Path) -> None:
    """Writes one PNG, with its text alternative in the metadata."""
    paper, fields = pyplot.subplots(1, len(figure.panels), figsize=(6, 3.4), dpi=110, sharey=True,
                                    squeeze=False)
    # Fixed, since a layout that measures every text takes half of the time.
    paper.subplots_adjust(left=figure.left / 460, right=0.97, bottom=0.15, top=0.83, wspace=0.05)
    x_span, y_span = span(figure, "x"), span(figure, "y")
    for index, axes in enumerate(fields[0]):
        rows: dict[tuple[int, int, float], list[tuple[float, float]]] = {}
        for box in figure.boxes:  # thousands: a call for each would take seconds
            rows.setdefault((box.lane, box.colour, box.shade), []).append(
                (box.x0, box.x1 - box.x0))
            if box.text:
                axes.text((box.x0 + box.x1) / 2, box.lane, box.text, fontsize=7, ha="center",
                          va="center")
        for (lane, colour, shade), spans in rows.items():
            axes.broken_barh(spans, (lane - 0.38, 0.76), color=COLOURS[colour % len(COLOURS)],
                             alpha=shade)
        for line in figure.lines:
            if line.panel == index and line.x:
                draw_line(axes, line)
        axes.set_xscale("log" if figure.x.log else "linear")
        axes.set_yscale("log" if figure.y.log else "linear")
        axes.set_xlim(*x_span)
        axes.set_ylim(*y_span)
        for rule in figure.rules:
            if rule.panel is None or rule.panel == index:
                draw_rule(axes, rule, rule.panel is not None or index == 0)
        for axis, own, ends in ((axes.xaxis, figure.x, x_span), (axes.yaxis, figure.y, y_span)):
            marks = ticks(own, *ends)
            axis.set_ticks([value for value, _ in marks], [text for _, text in marks], fontsize=7)
            axis.set_ticks([], minor=True)
        axes.set_title(figure.panels[index], fontsize=8)
        axes.grid(alpha=0.25)
    fields[0][0].set_ylabel(figure.y.label, fontsize=8)
    paper.supxlabel(figure.x.label, fontsize=8)
    paper.suptitle("\n".join(textwrap.wrap(figure.title, 90)), fontsize=9)
    names = dict(zip(*reversed(fields[0][0].get_legend_handles_labels())))
    if names:
        fields[0][0].legend(names.values(), names.keys(), fontsize=7)
    paper.savefig(path, metadata={"Software": None, "Description": figure.alt})
    pyplot.close(paper)


def draw_all(figures: Iterable[Figure], folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        if not figure.is_empty():
            draw(figure, folder / f"{figure.name}.png")
