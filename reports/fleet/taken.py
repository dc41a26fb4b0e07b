"""Reads one evidence folder or archive for a merge: checks it, and keeps what a merge needs.

Unlike evidence.py this leaves out what a merge does not show: tables, saboteurs, notes.
"""

import math
import pathlib
import re
import statistics
from dataclasses import dataclass, field
from typing import Any

from .. import hdr, integrity, schema
from ..archive import Archived
from ..evidence import RAN, folder_of
from ..hdr import Histogram
from ..integrity import read_json
from .fleet_files import digest, is_file, listed_only, load

NODE = re.compile(r"[A-Za-z0-9._-]{1,63}")      # as the harness takes TOLLENS_NODE
UUID = re.compile(r"(GPU|MIG)-[0-9a-f-]{36}")
BEGIN_MAX = 4e9  # seconds since 1970: the year 2096
KEPT = ("id", "title", "verdict", "reason", "effect", "unit", "low", "high", "threshold",
        "direction", "samples", "severity")
Key = tuple[str, str, str]  # of a series: claim, attack, name


@dataclass
class Run:
    """What a merge keeps of a run; it is small, so that a thousand of them are."""

    path: str
    digest: str                  # the same for the same files, in a folder or an archive
    node: str                    # "": not named
    uuid: str                    # of the device; "": older evidence
    kind: str                    # cuda or soft
    device: str
    mode: str
    commit: str                  # with "+" where sources differed from it
    filter: str                  # the attacks that ran; "": all
    plugins: str                 # names and versions
    begin_s: float
    exit_code: int
    claims: dict[str, dict[str, Any]]  # rows of results.json, by id
    quantities: dict[str, float] = field(default_factory=dict)  # by "H4 launch_1 runtime, ns"

    @property
    def machine(self) -> str:
        """The same for all runs of one GPU. All soft devices have one UUID, and where nothing tells
        two machines apart each run counts as one."""
        known = [self.node, self.uuid if self.kind == "cuda" or self.node else ""]
        return " ".join(filter(None, known)) or self.path

    @property
    def group(self) -> tuple[str, ...]:
        """Runs whose numbers can be compared and added up."""
        return (self.kind, self.device, self.mode, self.commit, self.filter, self.plugins)


def number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{what} is {value!r}, which is not a number")
    return float(value)


def matching(pattern: "re.Pattern[str]", value: Any, what: str) -> str:
    if value in (None, ""):
        return ""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{what} is {value!r}")
    return value


def read_attack(claim: str, attack: dict[str, Any], own: Archived, run: Run,
                series: dict[Key, Histogram], sides: dict[str, list[float]]) -> None:
    """Adds the attack's histograms to series, and the times of its comparisons to sides."""
    name, below = str(attack["name"]), folder_of(attack)
    where = own / below if below else own
    record = where / "attacks" / f"{name}.json"
    if attack["ending"] not in RAN and not is_file(record):
        return
    found = read_json(record)
    for effect in found.get("effects", []):
        for side in ("baseline_ns", "subject_ns"):
            if effect[side] is not None:
                key = f"{claim} {effect['name']} {side.removesuffix('_ns')}, ns"
                sides.setdefault(key, []).append(number(effect[side], f"{record}: {side}"))
    log = where / f"{name}.hlog"
    if not found.get("series") and not is_file(log):
        return
    read = hdr.read_log(log)
    integrity.check_series(log, found.get("series", []),
                           {tag: (one.total, one.maximum) for tag, one in read})
    for tag, one in read:
        key = (claim, name, tag)
        series[key] = series[key].merged(one) if key in series else one


def quantities(run: Run, series: dict[Key, Histogram],
               sides: dict[str, list[float]]) -> dict[str, float]:
    """The quantities in which machines can differ: effects that are not counts and, on a GPU,
    times. Times of the soft device say nothing about a GPU."""
    found = {}
    for name, row in run.claims.items():
        if row["effect"] is not None and row["unit"] not in ("violations", "driver allocations"):
            found[f"{name} effect, {row['unit']}"] = float(row["effect"])
    if run.kind == "cuda":
        found |= {key: statistics.median(values) for key, values in sides.items()}
        for (claim, attack, name), one in series.items():
            for percent, least in ((50, 8), (99, 1000)):
                if one.total >= least:
                    found[f"{claim} {attack}: {name} p{percent}, ns"] = one.percentile(percent)
    return found


def describe(folder: Archived, path: pathlib.Path, run: dict[str, Any]) -> Run:
    """What run.json, results.json and machine.json say."""
    results = read_json(folder / "results.json")
    faults = schema.check_results(results)
    if "schema" not in results or faults:
        raise ValueError(f"{folder / 'results.json'} does not match its schema: "
                         f"{(faults or ['it has none'])[0]}")
    if results.get("under"):
        raise ValueError(f"{path} was run with the injected fault {results['under']!r}: its "
                         "verdicts are not about the machine")
    machine, device = read_json(folder / "machine.json"), results["device"]
    begin = number(run["begin_s"], f"{folder / 'run.json'}: begin_s")
    if not 0 <= begin <= BEGIN_MAX:
        raise ValueError(f"{folder / 'run.json'} says that the run began at {begin:g} s")
    if not isinstance(run["exit_code"], int):
        raise ValueError(f"{folder / 'run.json'}: exit_code is {run['exit_code']!r}")
    rows = {row["id"]: {key: row.get(key) for key in KEPT} for row in results["claims"]}
    if len(rows) != len(results["claims"]):
        raise ValueError(f"{folder / 'results.json'} has a claim twice")
    for name, row in rows.items():
        for key in ("effect", "threshold", "samples"):
            if row[key] is not None:
                number(row[key], f"{folder / 'results.json'}: {key} of {name}")
    return Run(str(path), "", matching(NODE, machine.get("node"), f"{path}: the node's name"),
               matching(UUID, machine["device"].get("uuid"), f"{path}: the device's UUID"),
               device["kind"], device["name"], results["mode"],
               results["commit"] + "+" * bool(results.get("dirty")), str(run.get("filter") or ""),
               ", ".join(f"{one['name']} {one['version']}" for one in results.get("plugins", [])),
               begin, run["exit_code"], rows)


def read(path: pathlib.Path) -> tuple[Run, dict[Key, Histogram]]:
    """The run and its histograms. Missing; or ValueError, which says what is wrong."""
    folder = load(path)
    if not is_file(folder / "run.json"):
        raise ValueError(f"{path} has no run.json, which a run writes last: it was cut off")
    try:
        said = read_json(folder / "run.json")
        folder = listed_only(folder, integrity.check_manifest(folder, said))
        run = describe(folder, path, said)
        series: dict[Key, Histogram] = {}
        sides: dict[str, list[float]] = {}
        for result in run.claims.values():
            own = folder / str(result["id"])
            verdict = read_json(own / "verdict.json")
            integrity.check_verdict(own / "verdict.json", verdict, result)
            for attack in verdict.get("attacks", []):
                read_attack(str(result["id"]), attack, own, run, series, sides)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: the evidence lacks {error}") from error
    except (RecursionError, OverflowError, MemoryError) as error:
        raise ValueError(f"{path} is no evidence: {type(error).__name__}") from error
    run.quantities = quantities(run, series, sides)
    run.digest = digest(folder.files)
    return run, series
