"""Reads many evidence folders in parallel and adds up their histograms.

The sums are exact: a histogram's counts are whole numbers, and those of the same bucket are added.
"""

import collections
import multiprocessing
import os
import pathlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from ..hdr import Histogram
from . import fleet_files, taken
from .taken import Key, Run

CHUNK = 8  # folders that a process reads before it answers
GroupKey = tuple[tuple[str, ...], Key]
Answer = tuple[Run | None, dict[Key, Histogram], bool, str]


@dataclass
class Fleet:
    """All runs that were taken, and the others with the reason."""

    runs: list[Run] = field(default_factory=list)  # in the order of their beginning
    histograms: dict[GroupKey, Histogram] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)     # path, reason
    duplicates: list[tuple[str, str]] = field(default_factory=list)  # path, that of the first


def plain(text: str) -> str:
    """A sentence for a terminal and a page: one line without control characters."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:600]


def read(path: str) -> Answer:
    """The run with its histograms; or None, whether it is missing, and the reason."""
    try:
        run, series = taken.read(pathlib.Path(path))
        return run, series, False, ""
    except (ValueError, OSError) as error:
        return None, {}, isinstance(error, fleet_files.Missing), plain(str(error))


class Sum:
    """A sum of histograms that grows: sorted once, at the end."""

    def __init__(self, lowest: int, highest: int, digits: int) -> None:
        self.lowest, self.highest, self.digits = lowest, highest, digits
        self.counts: dict[int, int] = {}

    def check(self, one: Histogram) -> None:
        """ValueError if its buckets are others."""
        Histogram(self.lowest, self.highest, self.digits).merged(
            Histogram(one.lowest, one.highest, one.digits))

    def add(self, one: Histogram) -> None:
        counts = self.counts
        self.highest = max(self.highest, one.highest)
        for value, count in one.buckets:
            counts[value] = counts.get(value, 0) + count

    def whole(self) -> Histogram:
        return Histogram(self.lowest, self.highest, self.digits, sorted(self.counts.items()))


def add(sums: dict[GroupKey, Sum], group: tuple[str, ...],
        series: dict[Key, Histogram]) -> None:
    """ValueError, and nothing is added, if a series has other buckets than before."""
    for key, one in series.items():
        if (group, key) in sums:
            sums[group, key].check(one)
    for key, one in series.items():
        sums.setdefault((group, key), Sum(one.lowest, one.highest, one.digits)).add(one)


def accept(fleet: Fleet, sums: dict[GroupKey, Sum], run: Run, series: dict[Key, Histogram],
           digests: dict[str, str], begun: dict[tuple[str, float], str]) -> None:
    if run.digest in digests:
        fleet.duplicates.append((run.path, digests[run.digest]))
        return
    same = begun.get((run.machine, run.begin_s))
    if same is not None:
        fleet.refused.append((run.path, f"{run.path} says that it is the same run as {same}, and "
                                        "has other files: one of them was changed"))
        return
    try:
        add(sums, run.group, series)
    except ValueError as error:
        fleet.refused.append((run.path, f"{run.path}: {error}"))
        return
    digests[run.digest] = begun[(run.machine, run.begin_s)] = run.path
    fleet.runs.append(run)


def answers(paths: Sequence[str], jobs: int) -> Iterable[Answer]:
    """In the order of the paths."""
    if jobs == 1 or len(paths) <= CHUNK:
        yield from map(read, paths)
        return
    # Not forked: a process that has threads, as matplotlib's has, may stop in a child.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([taken.__name__])
    with ProcessPoolExecutor(jobs, context) as pool:
        waiting: collections.deque[Any] = collections.deque()
        for at in range(0, len(paths), CHUNK):
            waiting.append(pool.submit(read_all, paths[at:at + CHUNK]))
            if len(waiting) > 2 * jobs:  # what is read and not yet added takes memory
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def read_all(paths: Sequence[str]) -> list[Answer]:
    return [read(path) for path in paths]


def merge(paths: Sequence[str], jobs: int | None = None) -> Fleet:
    """Adds up all runs, each evidence once, in the order of the paths. ValueError: a process that
    reads was killed, for example because memory ran out."""
    fleet = Fleet()
    sums: dict[GroupKey, Sum] = {}
    digests: dict[str, str] = {}
    begun: dict[tuple[str, float], str] = {}
    try:
        for path, answer in zip(paths, answers(paths, jobs or len(os.sched_getaffinity(0)))):
            run, series, is_missing, why = answer
            if run is not None:
                accept(fleet, sums, run, series, digests, begun)
            elif is_missing:
                fleet.missing.append(path)
            else:
                fleet.refused.append((path, why))
    except BrokenProcessPool as error:
        raise ValueError("a process that reads evidence was killed; memory may have run "
                         "out") from error
    fleet.histograms = {key: one.whole() for key, one in sums.items()}
    fleet.runs.sort(key=lambda run: (run.begin_s, run.path))
    return fleet


def mixture(runs: Sequence[Run]) -> str:
    """Why runs are not of one kind, in a sentence that names two of them; "" if they are."""
    for run in runs[1:]:
        for name, one, other in (("commit", runs[0].commit, run.commit),
                                 ("mode", runs[0].mode, run.mode),
                                 ("attacks", runs[0].filter, run.filter),
                                 ("plugins", runs[0].plugins, run.plugins)):
            if one != other:
                return (f"{runs[0].path} has the {name} {one[:60] or 'all'!r} and {run.path} "
                        f"{other[:60] or 'all'!r}")
    seen: dict[str, tuple[Run, tuple[Any, ...]]] = {}
    for run in runs:
        for name, row in run.claims.items():
            rule = (row["direction"], row["threshold"], row["unit"])
            first, before = seen.setdefault(name, (run, rule))
            if before != rule:
                return (f"{first.path} judges {name} by {before[0]} {before[1]:g} {before[2]} and "
                        f"{run.path} by {rule[0]} {rule[1]:g} {rule[2]}")
    return ""
