#!/usr/bin/env python3
"""Compares PyTorch's allocators with Tollens: bytes reserved, time per step, what still fits.

    bench-pool --torch [OPTIONS]        or: python3 runtime/driver/torch/torch_bench.py [OPTIONS]
        --json FILE        write all measurements and the verdicts there
        --rounds N         processes for each load and allocator; 3; 0: only what fits
        --steps N          steps per process; 40, of which the first quarter is not judged
        --limit BYTES      the hard limit of the largest size that fits; 8 GiB; 0: leave that out
        --together N       concurrent processes that search for the largest size that fits; 1
        --loads A,B        of transformer, resnet, kv_cache
        --allocators A,B   of native, expandable, async, tollens, tollens:1.01
        --seconds N        begin nothing more after that; 1500

Each trial is a new process, and the order of the allocators changes from round to round. The next
process imports PyTorch meanwhile, and waits for its turn before it uses the device. Step times are
compared step by step, because all allocators get the same shapes: the median of the ratios with its
95 % interval, by bootstrapping steps. Exit code: 0; 2: a trial failed;
3: there is no device.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LOADS = ["transformer", "resnet", "kv_cache"]
ALLOCATORS = ["native", "expandable", "async", "tollens"]
DRAWS = 1000
AIM_RATIO, AIM_TIME = 1.02, 0.99


class Trial:
    """A process that has begun to import PyTorch, and runs its load when it gets a line."""

    def __init__(self, load: str, allocator: str, *options: str) -> None:
        self.load, self.allocator, self.options = load, allocator, options
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "torch_trial.py"), load, allocator, "--wait", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self) -> dict:
        try:
            out, errors = self.process.communicate("go\n", timeout=900)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, errors = self.process.communicate()
        lines = [line for line in out.splitlines() if line.startswith("{")]
        result = json.loads(lines[-1]) if lines else {
            "load": self.load, "allocator": self.allocator,
            "failure": f"exit code {self.process.returncode}: {errors[-600:]}"}
        print(f"# {self.load} {self.allocator} {' '.join(self.options)}: "
              f"{result.get('failure') or 'done'}", file=sys.stderr, flush=True)
        return result

    def drop(self) -> None:
        self.process.kill()
        self.process.communicate()


def one_by_one(queue: list[tuple[str, ...]], end: float) -> list[dict]:
    """The results of the trials in their order, of those that begin before the end."""
    results: list[dict] = []
    following = Trial(*queue[0]) if queue else None
    for number in range(len(queue)):
        current = following
        following = Trial(*queue[number + 1]) if number + 1 < len(queue) else None
        if current is None or time.monotonic() > end:
            break
        results.append(current.run())
        current = None
    for trial in (current, following):
        if trial is not None:
            trial.drop()
    return results


def some_at_once(queue: list[tuple[str, ...]], together: int, end: float) -> list[dict]:
    def run(item: tuple[str, ...]) -> list[dict]:
        return [Trial(*item).run()] if time.monotonic() < end else []

    with concurrent.futures.ThreadPoolExecutor(together) as threads:
        return [result for part in threads.map(run, queue) for result in part]


def judged(result: dict) -> list[float]:
    """The step times without those of the first quarter: libraries load, caches fill."""
    return result["ms"][len(result["ms"]) // 4:]


def interval(values: list[float], seed: int = 1) -> tuple[float, float, float]:
    """The median with its 95 % interval."""
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(values, k=len(values)))
                     for _ in range(DRAWS))
    return statistics.median(values), medians[DRAWS // 40], medians[-1 - DRAWS // 40]


def of(results: list[dict], load: str, allocator: str) -> list[dict]:
    return [r for r in results if r["load"] == load and r["allocator"] == allocator and "ms" in r]


def step_ratios(results: list[dict], load: str, one: str, other: str) -> list[float]:
    """For each step the times of one to the times of the other, round by round."""
    pairs = zip(of(results, load, one), of(results, load, other))
    return [a / b for first, second in pairs for a, b in zip(judged(first), judged(second))]


def summary(results: list[dict], fits: list[dict], load: str, allocator: str) -> dict:
    runs = of(results, load, allocator)
    if not runs:
        return {}
    median, low, high = interval([ms for run in runs for ms in judged(run)])
    fit = next((f for f in fits if f.get("largest") is not None
                and f["load"] == load and f["allocator"] == allocator), {})
    return {"load": load, "allocator": allocator,
            "reserved": max(run["reserved"] for run in runs),
            "allocated": max(run["allocated"] for run in runs),
            "ratio": max(run["ratio"] for run in runs),
            "device_used": max(run["device_used"] for run in runs),
            "driver_calls": max(run["driver_calls"] for run in runs),
            "ms": median, "ms_low": low, "ms_high": high, "largest": fit.get("largest"),
            "is_within": fit.get("reserved", 0) <= fit.get("limit", 0)}


def verdict(results: list[dict], rows: list[dict], load: str, ours: str) -> dict:
    """Tollens beside the best of the others, for each measure by itself."""
    own = next((r for r in rows if r["load"] == load and r["allocator"] == ours), None)
    others = [r for r in rows if r["load"] == load and not r["allocator"].startswith("tollens")]
    if own is None or not others:
        return {}
    fastest = min(others, key=lambda r: r["ms"])
    time_ratio, low, high = interval(step_ratios(results, load, ours, fastest["allocator"]))
    best_ratio = min(r["ratio"] for r in others)
    # cudaMallocAsync counts what is in use against the limit, and holds more.
    best_fit = max((r["largest"] for r in others if r["largest"] is not None and r["is_within"]),
                   default=None)
    return {"load": load, "allocator": ours, "ratio": own["ratio"], "best_ratio": best_ratio,
            "ratio_must": own["ratio"] <= best_ratio, "ratio_aim": own["ratio"] <= AIM_RATIO,
            "time": time_ratio, "time_low": low, "time_high": high,
            "fastest": fastest["allocator"], "time_must": low <= 1,
            "time_aim": time_ratio <= AIM_TIME,
            "reserved_must": own["reserved"] <= min(r["reserved"] for r in others),
            "largest": own["largest"], "best_largest": best_fit,
            "largest_must": best_fit is None or (own["largest"] or 0) >= best_fit}


def print_table(rows: list[dict], verdicts: list[dict]) -> None:
    print(f"{'load':12} {'allocator':14} {'reserved MiB':>12} {'/ allocated':>11} "
          f"{'device MiB':>10} {'calls':>7} {'step ms':>9} {'95 %':>17} {'fits':>6}")
    for r in rows:
        fit = "" if r["largest"] is None else f"{r['largest']:.3f}"
        print(f"{r['load']:12} {r['allocator']:14} {r['reserved'] / 2**20:12.0f} "
              f"{r['ratio']:11.4f} {r['device_used'] / 2**20:10.0f} {r['driver_calls']:7} "
              f"{r['ms']:9.3f} {r['ms_low']:8.3f} {r['ms_high']:8.3f} {fit:>6}")
    for v in verdicts:
        words = [f"{name} {'holds' if v[name + '_must'] else 'FAILS'}"
                 for name in ("ratio", "reserved", "time", "largest")]
        print(f"{v['load']:12} {v['allocator']:14} ratio {v['ratio']:.4f} of {v['best_ratio']:.4f};"
              f" step {v['time']:.4f} ({v['time_low']:.4f} to {v['time_high']:.4f}) of "
              f"{v['fastest']}: {', '.join(words)}")


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--limit", type=int, default=8 << 30)
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--allocators", default=",".join(ALLOCATORS))
    parser.add_argument("--seconds", type=float, default=1500)
    given = parser.parse_args()
    loads, allocators = given.loads.split(","), given.allocators.split(",")
    end = time.monotonic() + given.seconds
    fits = some_at_once([(load, allocator, "--fit", "--limit", str(given.limit))
                         for load in loads for allocator in allocators if given.limit],
                        given.together, end)
    turns = [number % len(allocators) for number in range(given.rounds)]
    results = one_by_one(
        [(load, allocator, "--steps", str(given.steps), "--seed", str(number + 1))
         for number, turn in enumerate(turns) for load in loads
         for allocator in allocators[turn:] + allocators[:turn]], end)
    if results and all(r.get("failure") == "there is no device" for r in results):
        print("bench-pool --torch: there is no device that PyTorch can use", file=sys.stderr)
        return 3
    rows = [row for load in loads for allocator in allocators
            if (row := summary(results, fits, load, allocator))]
    verdicts = [v for load in loads for allocator in allocators
                if allocator.startswith("tollens")
                and (v := verdict(results, rows, load, allocator))]
    print_table(rows, verdicts)
    for fit in fits:
        print(f"{fit['load']:12} {fit['allocator']:14} of {given.limit / 2**30:.1f} GiB fits "
              f"a scale of {fit.get('largest', 0):.3f}, {fit.get('reserved', 0) / 2**20:.0f} MiB "
              f"held {fit.get('failure', '')}")
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(
            {"rows": rows, "verdicts": verdicts, "trials": results, "fits": fits}))
    return 2 if any("failure" in r for r in results + fits) else 0


if __name__ == "__main__":
    sys.exit(main())
