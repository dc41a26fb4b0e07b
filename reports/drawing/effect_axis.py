"""A claim's effect with its interval on a small axis, and the threshold."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, EDGE = 190, 26, 6


def ends(result: dict[str, Any], beside: Sequence[dict[str, Any]]) -> tuple[float, float, bool]:
    """The ends of the axis, and whether it is logarithmic: for errors far below the threshold."""
    threshold = float(result["threshold"])
    values = [float(value) for row in (result, *beside) if row.get("effect") is not None
              for value in (row["effect"], row.get("low"), row.get("high")) if value is not None]
    low, high = min(values), max(values)
    if "error" in result["unit"] and 0 < low <= high < threshold / 10:
        return 10 ** (math.floor(math.log10(low)) - 1), threshold * 10, True
    if result["unit"] == "ratio":
        reach = max(abs(value - 1.0) for value in (low, high, threshold)) * 1.25
        return 1.0 - (reach if low < 1 else reach * 0.2), 1.0 + reach, False
    least, most = min(0.0, low, threshold), max(low, high, threshold)
    room = (most - least) * 0.15 or 1.0
    return least - room * 0.5, most + room, False


def sentence(result: dict[str, Any]) -> str:
    low, high = result.get("low"), result.get("high")
    interval = f", interval {low:.4g} to {high:.4g}" if None not in (low, high) else ""
    words = {"at_most": "falsified above", "below": "falsified at or above",
             "above": "falsified at or below"}
    return (f"effect {result['effect']:.4g} {result['unit']}{interval}; "
            f"{words[result['direction']]} {result['threshold']:.4g}")


def draw(result: dict[str, Any], beside: Sequence[dict[str, Any]] = ()) -> str:
    """An <svg>; "" if there is no effect. Those of the same claim that stand beside it share its
    axis."""
    if result.get("effect") is None:
        return ""
    low, high, log = ends(result, beside)

    def at(value: float) -> float:
        if log:
            value = math.log10(max(value, low))
            share = (value - math.log10(low)) / (math.log10(high) - math.log10(low))
        else:
            share = (value - low) / (high - low)
        return EDGE + (WIDTH - 2 * EDGE) * min(max(share, 0.0), 1.0)

    edge = at(float(result["threshold"]))
    past = (0.0, edge) if result["direction"] == "above" else (edge, float(WIDTH))
    text = escape(sentence(result) + ("; logarithmic" if log else ""))
    middle = HEIGHT / 2
    parts = [f'<svg class="axis {escape(result["verdict"])}" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text}">'
             f"<title>{text}</title>",
             f'<rect class="past" x="{past[0]:.1f}" y="3" width="{past[1] - past[0]:.1f}" '
             f'height="{HEIGHT - 6}"/>',
             f'<path class="base" d="M0 {middle}H{WIDTH}"/>',
             f'<path class="edge" d="M{edge:.1f} 1V{HEIGHT - 1}"/>']
    bounds = [result.get("low"), result.get("high")]
    if bounds != [None, None]:
        left = 0.0 if bounds[0] is None else at(bounds[0])
        right = float(WIDTH) if bounds[1] is None else at(bounds[1])
        parts.append(f'<path class="hold" d="M{left:.1f} {middle}H{max(right, left + 1):.1f}"/>')
    parts.append(f'<circle class="at" cx="{at(float(result["effect"])):.1f}" cy="{middle}" '
                 'r="4"/></svg>')
    return "".join(parts)
