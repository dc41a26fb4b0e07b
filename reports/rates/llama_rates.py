#!/usr/bin/env python3
"""The ratio of the worker's rates to llama.cpp's, in published runs of both on one file.

    python3 -m reports.rates.llama_rates [FOLDER...]    a row for each rate; the default is all
                                                  folders under reports/published with both

A folder has model.txt, of `tollens model bench`, and llama-bench.txt and llama-batched.txt, of
llama.cpp's programs of these names. Demand M14 is that no rate is below half of llama.cpp's. Exit
code: 1 if one is, 2 if a file cannot be read.
"""

import pathlib
import re
import sys
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST = 0.5
FILES = ("model.txt", "llama-bench.txt", "llama-batched.txt")
OURS = re.compile(r"^(pp\d+|tg\d+ @ \d+) +([\d.]+) \+-", re.MULTILINE)
NUMBER = re.compile(r"[\d.]+")


def cells(text: str) -> Iterable[list[str]]:
    """The rows of the tables that llama.cpp prints."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def rates_of_bench(text: str) -> dict[str, float]:
    """Of llama-bench: pp512 and tg128 as the worker's bench names them."""
    found = {}
    for row in cells(text):
        rate = NUMBER.match(row[-1])
        if re.fullmatch(r"pp\d+", row[-2]) and rate:
            found[row[-2]] = float(rate.group())
        elif re.fullmatch(r"tg\d+", row[-2]) and rate:
            found[f"{row[-2]} @ 1"] = float(rate.group())
    return found


def rates_of_batches(text: str) -> dict[str, float]:
    """Of llama-batched-bench: tokens per second of all sessions. For one session llama-bench's
    rates count, which are higher."""
    rows = [row for row in cells(text) if row[0].isdigit()]
    return {f"tg{row[1]} @ {row[2]}": float(row[7]) for row in rows if row[2] != "1"}


def compare(folder: pathlib.Path) -> dict[str, tuple[float, float]]:
    """The worker's rate and llama.cpp's, of each that both have. ValueError: a file has none."""
    ours, bench, batches = ((folder / name).read_text(encoding="utf-8") for name in FILES)
    mine = {name: float(rate) for name, rate in OURS.findall(ours)}
    theirs = rates_of_batches(batches) | rates_of_bench(bench)
    for name, rates in zip(FILES, (mine, rates_of_bench(bench), rates_of_batches(batches))):
        if not rates or not all(rate > 0 for rate in rates.values()):
            raise ValueError(f"{folder / name} has no rates")
    missing = sorted(theirs.keys() - mine.keys())
    if missing:
        raise ValueError(f"{folder / FILES[0]} lacks {', '.join(missing)}")
    return {name: (mine[name], theirs[name]) for name in sorted(theirs)}


def folders(published: pathlib.Path = ROOT / "reports/published") -> list[pathlib.Path]:
    """The published runs that have all files, oldest first."""
    return sorted(path.parent for path in published.glob(f"*/{FILES[2]}")
                  if all((path.parent / name).is_file() for name in FILES))


def main(names: list[str]) -> int:
    code = 0
    for folder in [pathlib.Path(name) for name in names] or folders():
        try:
            found = compare(folder)
        except (OSError, ValueError) as error:
            print(f"llama_rates: {error}", file=sys.stderr)
            return 2
        for name, (mine, theirs) in found.items():
            low = mine < LEAST * theirs
            code = 1 if low else code
            print(f"{folder.name}: {name}: {mine:.1f} tokens/s, {mine / theirs:.2f} of llama.cpp's "
                  f"{theirs:.1f}{', below half' if low else ''}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
