#!/usr/bin/env python3
"""Holds our histograms against HdrHistogram's Java and Python implementations, bucket for bucket.

    build/hdr/bin/python3 ci/hdr_interop.py build/hdr-interop

All three follow the same script (recording, correcting, adding, subtracting) and write a log; all
three then read all three logs. ci/setup makes the environment: PyPI's hdrhistogram, and JPype, by
which Python calls Debian's hdrhistogram.jar. Exit code 1 where two disagree.
"""

import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

import jpype
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader, HistogramLogWriter

JAR = "/usr/share/java/hdrhistogram.jar"
HOUR = 3600 * 10**9
START_MS = 1700000000250
PERCENTS = (0, 10, 50, 90, 99, 99.9, 100)
Buckets = dict[str, dict[int, int]]  # of each tag, the counts by their buckets' lowest values


def script() -> list[str]:
    """Histograms of every precision, of odd ranges and counts, made in every way."""
    lines = [f"new empty 1 {HOUR} 3", f"new zero 1 {HOUR} 3", "record 0 1"]
    lines += [f"new ramp 1 {HOUR} 3"] + [f"record {value} 1" for value in range(5000)]
    lines += ["new counts 1 1099511627776 2"]
    lines += [f"record {3**power} {1 << 2 * power}" for power in range(20)]
    state = 1
    # Python looks at every count, so what has many is kept short.
    for digits, highest in ((1, HOUR), (2, HOUR), (3, HOUR), (4, 10**6), (5, 10**5)):
        for lowest in (1, 1000):
            lines.append(f"new drawn.{digits}/{lowest} {lowest} {highest} {digits}")
            for _ in range(500):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                value = ((state >> 22) >> state % 37) % highest
                lines.append(f"record {value} {1 + state % 3}")
    lines += [f"new corrected 1 {HOUR} 3", "record 900 50", "correct 1000000 1000",
              "correct 77777 13", "correct 500 1000"]
    lines += [f"new sum 1 {HOUR} 3", "record 12345 6", "add ramp", "add corrected",
              "add drawn.3/1"]
    lines += ["new wider 1 10000000 4", "add ramp", "add corrected"]
    lines += [f"new difference 1 {HOUR} 3", "add sum", "subtract ramp"]
    return lines


class Ours:
    name = "ours"

    def __init__(self, program: str) -> None:
        self.program = program

    def run(self, *words: str, given: str = "") -> str:
        done = subprocess.run([self.program, *words], input=given, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def make(self, lines: list[str], path: pathlib.Path) -> None:
        self.run("make", str(path), given="\n".join(lines) + "\n")

    def read(self, path: pathlib.Path) -> Buckets:
        found: Buckets = {}
        for tag, what, key, value in map(str.split, self.run("buckets", str(path)).splitlines()):
            buckets = found.setdefault(tag, {})
            if what == "bucket":
                buckets[int(key)] = int(value)
        return found

    def percentiles(self, path: pathlib.Path) -> dict[tuple[str, str], int]:
        rows = map(str.split, self.run("buckets", str(path)).splitlines())
        return {(tag, key): int(value) for tag, what, key, value in rows if what == "percentile"}


class Java:
    name = "Java"

    def __init__(self) -> None:
        jpype.startJVM("-Xmx512m", classpath=[JAR])
        self.package = jpype.JPackage("org").HdrHistogram

    def make(self, lines: list[str], path: pathlib.Path) -> None:
        made: dict[str, object] = {}
        now = None
        for word, *rest in map(str.split, lines):
            if word == "new":
                now = made[rest[0]] = self.package.Histogram(*map(int, rest[1:]))
                now.setTag(rest[0])
                now.setStartTimeStamp(START_MS)
                now.setEndTimeStamp(START_MS + 1000)
            elif word == "record":
                now.recordValueWithCount(int(rest[0]), int(rest[1]))
            elif word == "correct":
                now.recordValueWithExpectedInterval(int(rest[0]), int(rest[1]))
            else:
                (now.add if word == "add" else now.subtract)(made[rest[0]])
        writer = self.package.HistogramLogWriter(str(path))
        writer.outputLogFormatVersion()
        writer.outputStartTime(START_MS)
        writer.setBaseTime(START_MS)
        writer.outputBaseTime(START_MS)
        writer.outputLegend()
        for histogram in made.values():
            writer.outputIntervalHistogram(histogram)
        writer.close()

    def read(self, path: pathlib.Path) -> Buckets:
        found: Buckets = {}
        reader = self.package.HistogramLogReader(str(path))
        while (histogram := reader.nextIntervalHistogram()) is not None:
            buckets = found.setdefault(str(histogram.getTag()), {})
            for at in histogram.recordedValues():
                lowest = histogram.lowestEquivalentValue(at.getValueIteratedTo())
                buckets[int(lowest)] = int(at.getCountAtValueIteratedTo())
        return found


class Python:
    name = "Python"

    def make(self, lines: list[str], path: pathlib.Path) -> None:
        made: dict[str, HdrHistogram] = {}
        for word, *rest in map(str.split, lines):
            if word == "new":
                now = made[rest[0]] = HdrHistogram(*map(int, rest[1:]))
                now.set_tag(rest[0])
            elif word == "record":
                now.record_value(int(rest[0]), int(rest[1]))
            elif word == "correct":
                # Its own correcting counts one value more than Java's and C's, below the interval.
                value, interval = map(int, rest)
                now.record_value(value)
                for held_up in range(value - interval, interval - 1, -interval):
                    now.record_value(held_up)
            elif word == "add":
                now.add(made[rest[0]])
            else:  # it cannot subtract
                made.pop(now.get_tag())
        with open(path, "w", encoding="ascii") as file:
            writer = HistogramLogWriter(file)
            writer.output_log_format_version()
            writer.output_base_time(START_MS)
            writer.output_legend()
            for tag, histogram in made.items():
                file.write(f"Tag={tag},")  # it reads tags and writes none
                writer.output_interval_histogram(histogram, START_MS / 1000, START_MS / 1000 + 1)

    def histograms(self, path: pathlib.Path) -> dict[str, HdrHistogram]:
        found = {}
        reader = HistogramLogReader(str(path), HdrHistogram(1, HOUR, 3))
        while (histogram := reader.get_next_interval_histogram()) is not None:
            found[histogram.get_tag()] = histogram
        return found

    def read(self, path: pathlib.Path) -> Buckets:
        return {tag: {histogram.get_lowest_equivalent_value(at.value_iterated_to):
                      at.count_at_value_iterated_to for at in histogram.get_recorded_iterator()}
                for tag, histogram in self.histograms(path).items()}


def compare(what: str, wanted: Buckets, found: Buckets) -> int:
    """Says where two differ; gives how many buckets agree."""
    if wanted.keys() != found.keys():
        raise AssertionError(f"{what}: the tags are {sorted(found)}, and not {sorted(wanted)}")
    for tag, buckets in wanted.items():
        if buckets != found[tag]:
            lowest = min(key for key in buckets.keys() | found[tag].keys()
                         if buckets.get(key) != found[tag].get(key))
            raise AssertionError(f"{what}: {tag}: the bucket of {lowest} has "
                                 f"{found[tag].get(lowest)}, and not {buckets.get(lowest)}")
    return sum(map(len, wanted.values()))


def check(program: str, folder: pathlib.Path) -> str:
    ours, python = Ours(program), Python()
    every = (ours, Java(), python)
    lines, agreed = script(), 0
    read: Callable[[str], Buckets]
    for writer in every:
        path = folder / f"{writer.name}.hlog"
        writer.make(lines, path)
        wanted = ours.read(folder / "ours.hlog")
        if writer is python:
            wanted.pop("difference")
        for reader in every:
            agreed += compare(f"{reader.name} reads what {writer.name} wrote", wanted,
                              reader.read(path))
    percentiles = ours.percentiles(folder / "ours.hlog")
    for tag, histogram in python.histograms(folder / "ours.hlog").items():
        for percent in PERCENTS:
            theirs = histogram.get_value_at_percentile(percent)
            mine = percentiles[tag, f"{percent:g}"]
            if histogram.get_total_count() > 0 and mine != theirs:
                raise AssertionError(f"{tag}: percentile {percent} is {mine}; Python: {theirs}")
    return f"{agreed} buckets of {len(wanted) + 1} histograms agree, in three by three ways"


if __name__ == "__main__":
    try:
        with tempfile.TemporaryDirectory() as work:
            print("summary:", check(sys.argv[1], pathlib.Path(work)))
    except AssertionError as error:
        print(f"hdr-interop: {error}")
        sys.exit(1)
