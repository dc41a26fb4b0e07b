"""A claim's effect from run to run as a line between words, with its threshold where it is near."""

from html import escape
from typing import Any

WIDTH, HEIGHT, EDGE = 92, 24, 4


def scale(values: list[float], threshold: float, tolerance: float) -> tuple[float, float]:
    """The ends of the axis. A difference within the tolerance looks small on it, and the threshold
    lies on it where it is near."""
    low, high = min(values) - 2 * tolerance, max(values) + 2 * tolerance
    if abs(threshold - (low + high) / 2) <= 2 * (high - low):
        low, high = min(low, threshold), max(high, threshold)
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def draw(results: list[dict[str, Any]], tolerance: float) -> str:
    """An <svg> of the effects in these rows of a claim, oldest first; "" if there are fewer than
    two."""
    if len(results) < 2:
        return ""
    values = [float(row["effect"]) for row in results]
    last = results[-1]
    threshold = float(last["threshold"])
    low, high = scale(values, threshold, tolerance)

    def place(at: int, value: float) -> str:
        x = EDGE + (WIDTH - 2 * EDGE) * at / (len(values) - 1)
        y = HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value - low) / (high - low)
        return f"{x:.1f} {y:.1f}"

    text = escape(f"{last['id']} in {len(values)} runs: first {values[0]:.4g}, last "
                  f"{values[-1]:.4g} {last['unit']}, from {min(values):.4g} to {max(values):.4g}; "
                  f"threshold {threshold:g}")
    parts = [f'<svg class="spark {escape(last["verdict"])}" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text}"><title>{text}</title>']
    if low <= threshold <= high:
        parts.append(f'<path class="edge" d="M{place(0, threshold)}H{WIDTH - EDGE}"/>')
    points = "L".join(place(at, value) for at, value in enumerate(values))
    x, y = place(len(values) - 1, values[-1]).split()
    parts.append(f'<path class="run" d="M{points}"/><circle class="at" cx="{x}" cy="{y}" r="3"/>'
                 "</svg>")
    return "".join(parts)
