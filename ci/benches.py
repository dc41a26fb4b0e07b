#!/usr/bin/env python3
"""Runs the benchmarks of copies, allocation, sealed memory and several devices on the soft device,
briefly, and checks their output: each row by its name, each number finite and positive.

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


def check_rows(rows: list[Row], names: tuple[str, ...], expected: list[tuple[Any, ...]],
               keys: set[str]) -> None:
    """Each expected row is there once, by the values of names, and has these keys and numbers."""
    found = [tuple(row[name] for name in names) for row in rows]
    assert sorted(found) == sorted(expected), f"rows {found}, expected {expected}"
    for row in rows:
        assert not keys or set(row) == keys | set(names), f"keys {sorted(row)}: {row}"
        for key, value in row.items():
            if not isinstance(value, (bool, str)):
                assert math.isfinite(value), f"{key} is {value}: {row}"
                assert value > 0 or (value == 0 and key in MAY_BE_0), f"{key} is {value}: {row}"


def check_ratio(row: Row, key: str, wanted: float, share: float) -> None:
    close = math.isclose(row[key], wanted, rel_tol=share, abs_tol=0.01)
    assert close, f"{key} is not {wanted}: {row}"


def copies(data: Any) -> int:
    rates = {f"{way}_gb_per_s" for way in WAYS}
    check_rows(data["rows"], ("direction", "bytes"),
               [(direction, size) for direction in DIRECTIONS for size in SIZES],
               {"of_pinned", "of_driver", *rates})
    for row in data["rows"]:
        share = row["runtime_pageable_gb_per_s"] / row["pinned_gb_per_s"]
        check_ratio(row, "of_pinned", share, 0.02)
    return len(data["rows"])


def blocks(rows: list[Row]) -> int:
    hot, walks, flights = ([row for row in rows if key in row]
                           for key in ("hot_bytes", "walk", "flight"))
    assert len(hot) + len(walks) + len(flights) == len(rows), "a row belongs to no table"
    check_rows(hot, ("hot_bytes", "allocator"),
               [(size, name) for size in HOT_BYTES for name in (*POOLS, "cuMemAlloc")],
               {"pair_ns_1_thread", "pair_ns_4_threads", "throughput_4_to_1"})
    check_rows(walks, ("walk", "allocator", "think_ns"), WALKS,
               {"final", "worst", "allocate_p50_ns", "allocate_p99_ns", "allocate_max_ns",
                "free_p50_ns", "free_p99_ns", "caller_handles", "ran_out"})
    check_rows(flights, ("allocator",), [(name,) for name in POOLS],
               {"flight", "free_ns", "allocate_ns", "driver_calls"})
    for row in hot:
        both = 4 * row["pair_ns_1_thread"] / row["pair_ns_4_threads"]
        check_ratio(row, "throughput_4_to_1", both, 0.05)
    for row in walks:
        assert not row["ran_out"], f"memory ran out: {row}"
        assert row["worst"] >= row["final"] >= 1, f"less is held than was allocated: {row}"
        assert row["allocate_p99_ns"] >= row["allocate_p50_ns"], f"p99 is below p50: {row}"
    return len(rows)


def pairs(data: Any) -> int:
    names = ["one way", "both ways", "all pairs", "latency of 4 KiB"]
    assert [matrix["name"] for matrix in data["matrices"]] == names, data["matrices"]
    for matrix in data["matrices"]:
        assert 0 < matrix["least"] < 1000, matrix
        for side in ("driver", "runtime"):
            assert [[value > 0 for value in row] for row in matrix[side]] == [
                [target != source for target in range(data["count"])]
                for source in range(data["count"])], matrix
    return len(names) * 2 * data["count"] * (data["count"] - 1)


def sealed(data: Any) -> int:
    passes = ["copy", "verify", *(f"{way} {rounds}" for way in ("seal", "open", "reseal")
                                  for rounds in (20, 12, 8))]
    products = [f"sealed {rounds} {state}" for state in ("cold", "hot") for rounds in (20, 12, 8)]
    rows = [{key: row[key] for key in ("operation", "variant", "us", "gb_per_s")}
            for row in data["rows"]]
    others = [(row["operation"], row["variant"]) for row in rows if row["operation"] != "seal"]
    check_rows(rows, ("operation", "variant"),
               [*others, *(("seal", name) for name in passes + products)], {"us", "gb_per_s"})
    return len(data["rows"])


def collectives(data: Any) -> int:
    calls = {"all-reduce", "reduce-scatter", "all-gather", "broadcast"}
    assert {row["call"] for row in data["rows"]} == calls, data["rows"]
    for row in data["rows"]:
        row["bus_gb_per_s"] = 1
        check_rows([row], ("call",), [(row["call"],)],
                   {"type", "bytes", "us", "alone_us", "bus_gb_per_s"})
    return len(data["rows"])


def run(*command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "TOLLENS_SOFT_MEMORY": "64G"})
    assert done.returncode == code, f"{' '.join(command)}: {done.returncode}: {done.stderr.strip()}"
    return done


def check_apart(program: list[str]) -> None:
    """bench-pool pins four threads to separate cores, or says how many cores that needs."""
    has = len(os.sched_getaffinity(0))
    for apart in (1, 250):
        need = 3 * apart + 1
        done = run(*program, "--apart", str(apart), code=0 if has >= need else 2)
        assert has >= need or f"needs {need} processors" in done.stderr, done.stderr


def check(build: pathlib.Path) -> str:
    library = str(build / "libtollens-soft.so")
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        for name, words, count, what in (
                ("transfer", ["--max", "1"], copies, "rows of copies"),
                ("peers", ["--mib", "1", "--turns", "1"], pairs, "numbers of pairs of devices"),
                ("seal", [], sealed, "rows of sealed memory"),
                ("collectives", ["--turns", "1"], collectives, "rows of collectives")):
            path = pathlib.Path(folder, f"{name}.json")
            run(str(build / f"bench-{name}"), "--library", library, *words, "--json", str(path))
            counts.append(f"{count(json.loads(path.read_text(encoding='utf-8')))} {what}")
    # With 1000 steps more than a GiB is in use, so ratios are measured.
    pool = str(build / "bench-pool")
    done = run(pool, "--json", "--steps", "1000", "--pairs", "100", library)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    counts.append(f"{blocks(rows)} rows of blocks")
    check_apart([pool, "--pairs", "100", "--steps", "1", library])
    return ", ".join(counts)


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
