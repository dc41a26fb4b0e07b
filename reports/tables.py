"""The tables of an attack, ATTACK.NAME.csv. The names of the columns say which kind each is."""

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

from . import errors, walks
from .archive import Folder
from .errors import Errors
from .walks import Walk

BLOCKS = ["block", "order", "calls", *(f"ns_{i}" for i in range(1, 5)),
          *(f"control_ns_{i}" for i in range(1, 5)), "effect", "control_effect"]
WAITED = [*BLOCKS, *(f"waited_ns_{i}" for i in range(1, 5))]  # since a later version
DISCARDED = [*WAITED, "discarded_baseline", "discarded_subject", "discarded_control"]  # and later
TIMELINE = ["lane", "what", "begin_ns", "end_ns"]  # H10, M12: what ran when, and on which stream
PLACES = ["begin", "end", "address", "bytes"]  # H12: the blocks of a replay, from step to step
MAP = ["address", "bytes", "state"]  # H12: live, cached, free (with memory), pending


@dataclass
class Blocks:
    """A comparison's raw blocks: the value of each, and of its control."""

    attack: str
    name: str
    process: int
    effects: list[float]
    controls: list[float]


@dataclass
class Rows:
    """A table of another known kind, as text."""

    attack: str
    name: str
    rows: list[list[str]]


@dataclass
class Tables:
    blocks: list[Blocks] = field(default_factory=list)
    walks: list[Walk] = field(default_factory=list)
    timelines: list[Rows] = field(default_factory=list)
    errors: list[Errors] = field(default_factory=list)
    maps: list[Rows] = field(default_factory=list)
    places: list[Rows] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # tables without a figure

    def add(self, other: "Tables") -> None:
        for name in ("blocks", "walks", "timelines", "errors", "maps", "places", "unknown"):
            getattr(self, name).extend(getattr(other, name))


def finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


# The type of each column, by kind. A table with other columns is another kind, or damaged.
KINDS: dict[tuple[str, ...], tuple[Callable[[str], object], ...]] = {
    tuple(BLOCKS): (int, str, int, *([finite] * 10)),
    tuple(WAITED): (int, str, int, *([finite] * 14)),
    tuple(DISCARDED): (int, str, int, *([finite] * 14), int, int, int),
    tuple(walks.COLUMNS): (int,) * 5,
    tuple(TIMELINE): (str, str, int, int),
    tuple(MAP): (int, int, str),
    tuple(PLACES): (int,) * 4,
}


def check_row(kinds: tuple[Callable[[str], object], ...], row: list[str]) -> None:
    if len(row) != len(kinds):
        raise ValueError(f"{len(row)} fields, not {len(kinds)}")
    for kind, cell in zip(kinds, row):
        kind(cell)


def lines_of(path: Folder, file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """The number and the fields of each line. ValueError: what no CSV may have, such as a field
    without an end, or a NUL before Python 3.11."""
    lines = csv.reader(file)
    try:
        for row in lines:
            yield lines.line_num, row
    except csv.Error as error:
        raise ValueError(f"{path} line {lines.line_num}: {error}") from error


def read_rows(path: Folder) -> tuple[tuple[str, ...], list[list[str]]]:
    """The columns and the rows. ValueError names the file and the damaged line."""
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        lines = lines_of(path, file)
        names = tuple(next(lines, (0, []))[1])
        if names not in KINDS and not errors.is_known(names):
            return names, []
        rows = []
        for number, row in lines:
            try:
                if names in KINDS:
                    check_row(KINDS[names], row)
                else:
                    errors.read(names, row, {})
            except ValueError as error:
                raise ValueError(f"{path} line {number}: {error}") from error
            rows.append(row)
    if not rows:
        raise ValueError(f"{path} has no line after its first")
    return names, rows


def read(claim: str, attack: str, process: int, folder: Folder) -> Tables:
    """The tables of one attack in one process."""
    found = Tables()
    for path in sorted(folder.glob(f"{attack}.*.csv")):
        name = path.name.removesuffix(".csv").split(".", 1)[1]
        names, rows = read_rows(path)
        if names in (tuple(BLOCKS), tuple(WAITED), tuple(DISCARDED)):
            found.blocks.append(Blocks(attack, name, process, [float(row[11]) for row in rows],
                                       [float(row[12]) for row in rows]))
        elif names == tuple(walks.COLUMNS):
            numbers = [dict(zip(walks.COLUMNS, map(int, row))) for row in rows]
            found.walks.append(Walk(claim, attack, name, numbers))
        elif names in KINDS:
            kinds = {tuple(TIMELINE): found.timelines, tuple(MAP): found.maps,
                     tuple(PLACES): found.places}
            kinds[names].append(Rows(attack, name, rows))
        elif errors.is_known(names):
            groups: dict[str, dict[float, int]] = {}
            for row in rows:
                errors.read(names, row, groups)
            found.errors.append(Errors(attack, name, names == errors.OCTAVES, groups))
        else:
            found.unknown.append(path.name)
    return found
