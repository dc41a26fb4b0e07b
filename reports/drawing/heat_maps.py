"""Heat maps of numbers of pairs of devices: one cell per pair, and darker cells are larger.

Such numbers are recorded under "NAME, device 0 to 1", and those of one NAME of an attack are one
figure.
"""

import re
from typing import Any

from ..evidence import Claim
from .figure import Axis, Box, Figure, file_name

PAIR = re.compile(r"(.+), device (\d+) to (\d+)")
FAINT, DARK = 0.08, 0.75
Cells = dict[tuple[int, int], float]


def is_of_pair(measure: dict[str, Any]) -> bool:
    return bool(measure["recorded_only"] and PAIR.fullmatch(measure["name"]))


def matrices(claim: Claim) -> dict[tuple[str, str], Cells]:
    """By attack and name; of several seeds or processes the mean."""
    values: dict[tuple[str, str], dict[tuple[int, int], list[float]]] = {}
    for measure in claim.measures:
        found = PAIR.fullmatch(measure["name"]) if is_of_pair(measure) else None
        if found is None or measure["value"] is None:
            continue
        cells = values.setdefault((measure["attack"], found[1]), {})
        cells.setdefault((int(found[2]), int(found[3])), []).append(float(measure["value"]))
    return {key: {pair: sum(some) / len(some) for pair, some in cells.items()}
            for key, cells in values.items()}


def shade(value: float, low: float, high: float) -> float:
    """Equal values are equally dark; a pair at half of the best is seen at once."""
    low = min(low, high / 2)
    return FAINT + (DARK - FAINT) * ((value - low) / (high - low) if high > low else 1.0)


def heat_map(claim: Claim, attack: str, name: str, cells: Cells) -> Figure:
    low, high = min(cells.values()), max(cells.values())
    slowest = min(cells, key=lambda pair: cells[pair])
    fastest = max(cells, key=lambda pair: cells[pair])
    devices = sorted({device for pair in cells for device in pair})
    boxes = [Box(to - 0.46, to + 0.46, -source, 0, f"device {source} to {to}: {value:.4g}",
                 shade(value, low, high), f"{value:.4g}")
             for (source, to), value in sorted(cells.items())]
    ends = (devices[0] - 0.5, devices[-1] + 0.5)
    alt = (f"Heat map of {len(cells)} pairs of {len(devices)} devices. {name}: {low:.4g} from "
           f"device {slowest[0]} to {slowest[1]}, up to {high:.4g} from device {fastest[0]} to "
           f"{fastest[1]}.")
    return Figure(file_name(claim.id, "pairs", attack, name), f"{claim.id} {name}", alt,
                  Axis("to device", ticks=[(float(d), str(d)) for d in devices], low=ends[0],
                       high=ends[1]),
                  Axis("from device", ticks=[(float(-d), str(d)) for d in devices], low=-ends[1],
                       high=-ends[0]), boxes=boxes)


def of_pairs(claim: Claim) -> list[Figure]:
    return [heat_map(claim, attack, name, cells)
            for (attack, name), cells in matrices(claim).items()]
