"""Invents the evidence of a fleet, for tests and to try the page:

    python3 -m reports.fleet.made_fleet FOLDER 200 gpu-017 gpu-080 gpu-133

writes a folder for each of 200 machines; the named ones are slow. The numbers of healthy machines
differ by 1 %. They are drawn from the machine's name, so the same call writes the same files.
"""

import json
import math
import pathlib
import random
import sys
import zlib
from collections.abc import Sequence
from typing import Any

from ..hdr import Histogram, highest_at
from . import hdr_write

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SPREAD = 0.01
SLOW = 1.25  # how much longer a slow machine takes
BEGIN_S = 1.78e9
CALLS = 1000
# Claims with the attack and the series that they have here; nanoseconds of a healthy machine.
TIMED = {"H4": ("a_launch_costs_little", {"launch_driver": 2900, "launch_runtime": 2930}),
         "H11": ("a_launch_is_as_fast", {"wait_driver": 9100, "wait_runtime": 9140}),
         "H3": ("every_size", {"to_device_64M": 1_310_000, "to_host_64M": 1_270_000})}


def uuid(name: str) -> str:
    digits = f"{random.Random(name).getrandbits(128):032x}"
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def histogram(draw: random.Random, middle: float) -> Histogram:
    """Calls around a middle, with a tail."""
    counts: dict[int, int] = {}
    for _ in range(CALLS):
        value = int(middle * math.exp(draw.gauss(0, 0.03)) * (4 if draw.random() < 0.002 else 1))
        top = highest_at(hdr_write.index_of(value, 1, 3), 1, 3)
        counts[top] = counts.get(top, 0) + 1
    return Histogram(1, 3_600_000_000_000, 3, sorted(counts.items()))


def row(name: str, **changed: Any) -> dict[str, Any]:
    return {"id": name, "title": f"The claim {name}", "verdict": "survived", "reason": None,
            "code": None, "effect": 0.0, "unit": "violations", "low": None, "high": None,
            "threshold": 0.0, "direction": "at_most", "samples": 100,
            "severity": {"caught": 3, "of": 3}, **changed}


def effect_of(name: str, draw: random.Random) -> dict[str, Any]:
    if name == "H4":
        return {"effect": draw.gauss(0.03, 0.004), "unit": "us", "threshold": 2.0}
    if name == "H11":
        return {"effect": draw.gauss(1.005, 0.002), "unit": "ratio", "threshold": 1.05}
    return {}


def texts_of(name: str, slow: float, own: float, draw: random.Random,
             changed: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A claim's row and its files."""
    attack, series = TIMED[name]
    result = row(name, **{**effect_of(name, draw), **changed})
    made = {tag: histogram(draw, ns * own * slow) for tag, ns in series.items()}
    record = {"schema": 1, "name": attack, "violations": 0, "counterexamples": [], "effects": [],
              "series": [{"name": tag, "count": one.total, "max": one.maximum}
                         for tag, one in made.items()]}
    verdict = {"schema": 1, **result, "attacks": [{"name": attack, "ending": "passed"}]}
    return result, {f"{name}/verdict.json": json.dumps(verdict),
                    f"{name}/attacks/{attack}.json": json.dumps(record),
                    f"{name}/{attack}.hlog": hdr_write.log(made.items())}


def make(folder: pathlib.Path, name: str, slow: float = 1.0, day: int = 0, kind: str = "cuda",
         claims: dict[str, dict[str, Any]] | None = None, **changed: Any) -> None:
    """Writes one machine's folder. claims: changes of rows, by id; changed: of run.json,
    results.json or machine.json where they have such a member, and of the device."""
    own = math.exp(random.Random(name).gauss(0, SPREAD))
    draw = random.Random(f"{name} {day}")
    device = {"kind": kind, "name": changed.get("device", "A <GPU>")}
    rows, texts = [], {}
    for claim in TIMED:
        result, files = texts_of(claim, slow, own, draw, (claims or {}).get(claim, {}))
        rows.append(result)
        texts |= files
    results = {"schema": 1, "device": device, "mode": "quick", "under": None, "commit": "c" * 40,
               "dirty": False, "plugins": [], "claims": rows}
    machine = {"schema": 1, "node": name, "device": {**device, "uuid": uuid(name)},
               "begin_s": BEGIN_S + 86400 * day}
    run = {"schema": 1, "command": "tollens run", "mode": "quick", "seed": 1, "filter": None,
           "begin_s": BEGIN_S + 86400 * day, "exit_code": 0}
    for key, value in changed.items():
        for part in (results, machine, run, machine["device"]):
            if key in part and key != "device":
                part[key] = value
    texts |= {"results.json": json.dumps(results), "machine.json": json.dumps(machine)}
    listed = json.dumps({"schema": 1, "files": {
        file: {"bytes": len(text.encode()), "crc32": f"{zlib.crc32(text.encode()):08x}"}
        for file, text in texts.items()}})
    texts["manifest.json"] = listed
    texts["run.json"] = json.dumps({**run, "list_crc32": f"{zlib.crc32(listed.encode()):08x}"})
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")


def make_fleet(top: pathlib.Path, count: int, slow: Sequence[str] = ()) -> list[pathlib.Path]:
    folders = []
    for at in range(count):
        name = f"gpu-{at:03}"
        folders.append(top / name)
        make(top / name, name, SLOW if name in slow else 1.0)
    return folders


if __name__ == "__main__":
    make_fleet(pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
