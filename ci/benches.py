#!/usr/bin/env python3
"""Whether the benchmarks of copies, of allocation and of sealed memory run, and what they print
makes sense: each row by its name, each number finite and positive. Short runs on the soft device;
no number is judged.

    ci/benches.py [FOLDER]    the folder of the build; build without one
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

Row = dict[str, Any]
DIRECTIONS = ("h2d", "d2h")
SIZES = (4096, 16384, 65536, 262144, 1048576)  # those of --max 1
WAYS = ("pinned", "driver_pageable", "runtime_pageable", "registered")
POOLS = ("pool, default", "pool, no caches", "pool, tight", "pool, latency", "cuMemAllocAsync")
HOT_BYTES = (1024, 5 << 20, 20 << 20)
WALKS = [("steady", name, 0) for name in POOLS] + [("growth", name, 0) for name in POOLS] + [
    ("growth", name, think) for name in (POOLS[0], POOLS[4]) for think in (5000, 50000)]
MAY_BE_0 = ("caller_handles", "driver_calls", "think_ns", "final", "worst")


def check_numbers(row: Row, keys: set[str]) -> None:
    assert set(row) == keys, f"keys {sorted(row)}, expected {sorted(keys)}: {row}"
    for key, value in row.items():
        if isinstance(value, (bool, str)):
            continue
        assert isinstance(value, (int, float)) and math.isfinite(value), f"{key} is {value}: {row}"
        assert value > 0 or (value == 0 and key in MAY_BE_0), f"{key} is {value}: {row}"


def check_names(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert sorted(found) == sorted(expected), f"rows {found}, expected {expected}"


def check_copies(data: dict[str, Any]) -> int:
    """The rows of bench-transfer --json; how many there are."""
    rows: list[Row] = data["rows"]
    check_names([(row["direction"], row["bytes"]) for row in rows],
                [(direction, size) for direction in DIRECTIONS for size in SIZES])
    rates = [f"{way}_gb_per_s" for way in WAYS]
    for row in rows:
        check_numbers(row, {"direction", "bytes", "of_pinned", "of_driver", *rates})
        share = row["runtime_pageable_gb_per_s"] / row["pinned_gb_per_s"]
        assert math.isclose(row["of_pinned"], share, rel_tol=0.02), f"not {share} of pinned: {row}"
    return len(rows)


def check_apart(program: list[str]) -> None:
    """bench-pool keeps four threads apart, or says how many processors that takes."""
    has = len(os.sched_getaffinity(0))
    for apart in (1, 250):
        done = subprocess.run([*program, "--apart", str(apart)], capture_output=True, text=True,
                              check=False)
        need = 3 * apart + 1
        if has >= need:
            assert done.returncode == 0, done.stderr
        else:
            assert done.returncode == 2 and f"needs {need} processors" in done.stderr, done.stderr


def check_blocks(rows: list[Row]) -> int:
    """The lines of bench-pool --json; how many there are."""
    hot = [row for row in rows if "hot_bytes" in row]
    walks = [row for row in rows if "walk" in row]
    flights = [row for row in rows if "flight" in row]
    assert len(hot) + len(walks) + len(flights) == len(rows), "a row belongs to no table"
    check_names([(row["hot_bytes"], row["allocator"]) for row in hot],
                [(size, name) for size in HOT_BYTES for name in (*POOLS, "cuMemAlloc")])
    check_names([(row["walk"], row["allocator"], row["think_ns"]) for row in walks], WALKS)
    check_names([(row["allocator"],) for row in flights], [(name,) for name in POOLS])
    for row in flights:
        check_numbers(row, {"flight", "allocator", "free_ns", "allocate_ns", "driver_calls"})
    for row in hot:
        check_numbers(row, {"hot_bytes", "allocator", "pair_ns_1_thread", "pair_ns_4_threads",
                            "throughput_4_to_1"})
        both = 4 * row["pair_ns_1_thread"] / row["pair_ns_4_threads"]
        assert math.isclose(row["throughput_4_to_1"], both, rel_tol=0.05, abs_tol=0.01), (
            f"the throughput is not {both}: {row}")
    for row in walks:
        check_numbers(row, {"walk", "allocator", "think_ns", "final", "worst", "allocate_p50_ns",
                            "allocate_p99_ns", "allocate_max_ns", "free_p50_ns", "free_p99_ns",
                            "caller_handles", "ran_out"})
        assert not row["ran_out"], f"memory ran out: {row}"
        assert row["worst"] >= row["final"] >= 1, f"less is held than was asked for: {row}"
        assert row["allocate_p99_ns"] >= row["allocate_p50_ns"], f"p99 is below p50: {row}"
    return len(rows)


def check_pairs(data: dict[str, Any]) -> int:
    """The matrices of bench-peers --json; how many numbers they have."""
    names = ["one way", "both ways", "all pairs", "latency of 4 KiB"]
    assert [matrix["name"] for matrix in data["matrices"]] == names, data["matrices"]
    numbers = 0
    for matrix in data["matrices"]:
        assert 0 < matrix["least"] < 1000, matrix
        for side in ("driver", "runtime"):
            assert len(matrix[side]) == data["count"], matrix
            for source, row in enumerate(matrix[side]):
                assert [value > 0 for value in row] == [
                    target != source for target in range(data["count"])], matrix
                numbers += len(row) - 1
    return numbers


def check_sealed(rows: list[Row]) -> int:
    """The rows of bench-seal --json; how many there are."""
    passes = ["copy", "verify", *(f"{way} {rounds}" for way in ("seal", "open", "reseal")
                                  for rounds in (20, 12, 8))]
    products = [f"sealed {rounds} {state}" for state in ("cold", "hot") for rounds in (20, 12, 8)]
    check_names([(row["variant"],) for row in rows if row["operation"] == "seal"],
                [(name,) for name in passes + products])
    for row in rows:
        for key in ("us", "gb_per_s"):
            assert math.isfinite(row[key]) and row[key] > 0, f"{key} is {row[key]}: {row}"
    return len(rows)


def check_collectives(data: dict[str, Any]) -> int:
    """The rows of bench-collectives --json; how many there are."""
    calls = {"all-reduce", "reduce-scatter", "all-gather", "broadcast"}
    assert {row["call"] for row in data["rows"]} == calls, data["rows"]
    for row in data["rows"]:
        check_numbers({**row, "bus_gb_per_s": 1}, {"call", "type", "bytes", "us", "alone_us",
                                                   "bus_gb_per_s"})
    return len(data["rows"])


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "TOLLENS_SOFT_MEMORY": "64G"})
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}: {done.stderr.strip()}"
    return done.stdout


def check(build: pathlib.Path) -> str:
    library = str(build / "libtollens-soft.so")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "copies.json")
        run(str(build / "bench-transfer"), "--library", library, "--max", "1", "--json", str(path))
        copies = check_copies(json.loads(path.read_text(encoding="utf-8")))
        path = pathlib.Path(folder, "peers.json")
        run(str(build / "bench-peers"), "--library", library, "--mib", "1", "--turns", "1",
            "--json", str(path))
        pairs = check_pairs(json.loads(path.read_text(encoding="utf-8")))
        path = pathlib.Path(folder, "sealed.json")
        run(str(build / "bench-seal"), "--library", library, "--json", str(path))
        sealed = check_sealed(json.loads(path.read_text(encoding="utf-8"))["rows"])
        path = pathlib.Path(folder, "collectives.json")
        run(str(build / "bench-collectives"), "--library", library, "--turns", "1", "--json",
            str(path))
        calls = check_collectives(json.loads(path.read_text(encoding="utf-8")))
    # So many steps bring more than a GiB into use, from where on ratios are measured.
    lines = run(str(build / "bench-pool"), "--json", "--steps", "1000", "--pairs", "100", library)
    blocks = check_blocks([json.loads(line) for line in lines.splitlines()])
    check_apart([str(build / "bench-pool"), "--pairs", "100", "--steps", "1", library])
    return (f"{copies} rows of copies, {blocks} of blocks, {pairs} numbers of pairs of devices, "
            f"{sealed} rows of sealed memory, {calls} of collectives")


def main() -> int:
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        print("summary:", check(pathlib.Path(sys.argv[1] if sys.argv[1:] else "build").resolve()))
    except (AssertionError, OSError, KeyError, ValueError) as error:
        print(f"benches: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
