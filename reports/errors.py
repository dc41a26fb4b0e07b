"""Distributions of numerical errors, read from the three kinds of table that attacks write.

    error,count                 how many results have at most this error
    path,above,up_to,count      by code path, as fractions of the allowed error (H5, H6)
    quantisation,...,zero,below_1e-12,...,more,not_finite      one line per run (H7)
"""

import math
from dataclasses import dataclass

PLAIN = ("error", "count")
OCTAVES = ("path", "above", "up_to", "count")
RUNS = ("quantisation", "type", "blocks", "variant", "seed", "elements", "same_bits", "zero")


@dataclass
class Errors:
    attack: str
    name: str
    of_allowed: bool  # sizes are fractions of the allowed error, not in the claim's unit
    groups: dict[str, dict[float, int]]  # by group: upper bound of the error -> results

    def worst(self) -> float:
        return max((size for sizes in self.groups.values() for size, n in sizes.items() if n > 0),
                   default=0.0)


def is_known(names: tuple[str, ...]) -> bool:
    return names in (PLAIN, OCTAVES) or names[:len(RUNS)] == RUNS


def count_of(text: str) -> int:
    count = int(text)
    if count < 0:
        raise ValueError(f"{text} is not a count")
    return count


def size_of(text: str) -> float:
    size = float(text)
    if not size >= 0:  # false for a NaN, too
        raise ValueError(f"{text} is not the size of an error")
    return size


def of_run(names: tuple[str, ...], row: list[str]) -> dict[float, int]:
    """Reads a line that has a column for each size."""
    sizes = {0.0: count_of(row[names.index("zero")])}
    for name, cell in list(zip(names, row))[len(RUNS):]:
        size = size_of(name[6:]) if name.startswith("below_") else math.inf
        sizes[size] = sizes.get(size, 0) + count_of(cell)
    return sizes


def read(names: tuple[str, ...], row: list[str], groups: dict[str, dict[float, int]]) -> None:
    """Adds a line to its group. ValueError: it is not a line of these tables."""
    if len(row) != len(names):
        raise ValueError(f"{len(row)} fields, not {len(names)}")
    if names == PLAIN:
        label, sizes = "", {size_of(row[0]): count_of(row[1])}
    elif names == OCTAVES:
        size_of(row[1])
        label, sizes = row[0], {size_of(row[2]): count_of(row[3])}
    else:
        label, sizes = f"{row[0]} to {row[1]}", of_run(names, row)
    group = groups.setdefault(label, {})
    for size, count in sizes.items():
        group[size] = group.get(size, 0) + count
