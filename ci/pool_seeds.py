#!/usr/bin/env python3
"""Runs H12 on the soft device under many seeds, and prints the worst of each profile.

    ci/pool_seeds.py [--seeds 200] [--first 1] [--filter H12/a_walk*] [--tollens build/tollens]
                     [--json FILE]

A quick run of a seed takes one or two seconds of a processor: walks of one and of four threads in
the default profile, steady states, mixed sizes and the comb under a limit in all three profiles.
Prints a line for each seed that falsifies the claim, and at the end, for each profile, the lowest
share of a limit that was usable after the comb, and the highest ratios.

Exit code: 0 no seed falsified H12, 1 one did, 2 usage or a run that failed.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WALK = "a walk, default"


def name_of(measure: str) -> str:
    """What a measure is counted under: "comb, tight: share usable" as it is; walks together."""
    for kind in ("final", "worst"):
        if measure.startswith(f"{kind}, ") and "thread" in measure:
            return f"{WALK}: {kind}, {measure.split(', ')[1]}"
    return measure


def run_seed(tollens: pathlib.Path, seed: int, which: str) -> tuple[str, list[tuple[str, float]]]:
    """The sentence of a verdict that is not "survived", or ""; and all that was measured."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = ["--filter", which] if which else []
        done = subprocess.run([str(tollens), "run", "H12", "--device", "soft", "--seed", str(seed),
                               "--jobs", "1", "--out", folder, *chosen], capture_output=True,
                              text=True, check=False)
        verdicts = pathlib.Path(folder, "H12/verdict.json")
        if done.returncode not in (0, 1, 3) or not verdicts.exists():
            raise OSError(f"seed {seed}: exit code {done.returncode}: {done.stderr.strip()[-400:]}")
        verdict = json.loads(verdicts.read_text(encoding="utf-8"))
        found = [(name_of(measure["name"]), float(measure["value"]))
                 for path in sorted(pathlib.Path(folder, "H12/attacks").glob("*.json"))
                 for measure in json.loads(path.read_text(encoding="utf-8"))["measures"]]
    # A part of the attacks leaves the claim inconclusive where they find nothing.
    right = ("survived", "inconclusive") if which else ("survived",)
    is_right = verdict["verdict"] in right
    return "" if is_right else f"{verdict['verdict']}: {verdict['reason']}", found


def summary(values: dict[str, list[float]]) -> list[str]:
    lines = []
    for name in sorted(values):
        low, high = min(values[name]), max(values[name])
        mean = sum(values[name]) / len(values[name])
        lines.append(f"{name:42} lowest {low:10.4f}  mean {mean:10.4f}  highest {high:10.4f}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--tollens", type=pathlib.Path, default=ROOT / "build/tollens")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    if given.seeds < 1 or given.first < 1:
        parser.error("--seeds and --first must be 1 or more")
    values: dict[str, list[float]] = {}
    wrong: dict[int, str] = {}
    for seed in range(given.first, given.first + given.seeds):
        try:
            sentence, found = run_seed(given.tollens.resolve(), seed, given.filter)
        except (OSError, KeyError, ValueError) as error:
            print(f"pool_seeds: {error}", file=sys.stderr)
            return 2
        for name, value in found:
            values.setdefault(name, []).append(value)
        if sentence:
            wrong[seed] = sentence
            print(f"seed {seed}: {sentence}", flush=True)
    print("\n".join(summary(values)))
    what = given.filter or "H12"
    print(f"{what} survived {given.seeds - len(wrong)} of {given.seeds} seeds")
    if given.json is not None:
        given.json.write_text(json.dumps({"first": given.first, "seeds": given.seeds,
                                          "wrong": wrong, "values": values}), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
