"""Reads and checks one evidence folder, or an archive of one."""

import pathlib
import re
from dataclasses import dataclass, field
from typing import Any

from . import archive, hdr, integrity, schema, tables
from .archive import Folder
from .hdr import Histogram
from .integrity import read_json
from .tables import Tables

VERDICTS = ("survived", "falsified", "inconclusive", "not_tested")
RAN = ("passed", "failed")  # outcomes of attacks that leave a record


@dataclass
class Series:
    """A timed series; the histograms of several processes are added up."""

    claim: str
    attack: str
    name: str
    histogram: Histogram
    processes: int = 1


Value = tuple[float, float, float]  # a median and its interval, or one number three times


def judged(record: dict[str, Any]) -> list[Value]:
    """Returns the values of an attack that are compared with the threshold."""
    found = []
    for one in record.get("effects", []):
        median, low, high = (one["effect"][key] for key in ("median", "low", "high"))
        if median is not None and not one["recorded_only"]:
            found.append((median, median if low is None else low, median if high is None else high))
    found += [(one["value"],) * 3 for one in record.get("measures", [])
              if one["value"] is not None and not one["recorded_only"]]
    return found


@dataclass
class Saboteur:
    name: str
    must: str      # the expected verdict; "" if the evidence does not say
    verdict: str   # the observed verdict; "" likewise
    right: bool | None
    reason: str
    violations: int
    examples: list[str]
    fallen: list[str]  # comparisons beyond their threshold
    attacks: dict[str, bool] = field(default_factory=dict)  # those that ran: has it noticed?
    values: list["Value"] = field(default_factory=list)     # judged numbers under the fault


@dataclass
class Claim:
    result: dict[str, Any]   # its row of results.json
    words: dict[str, Any]    # claim.json
    attacks: list[dict[str, Any]]
    examples: list[str] = field(default_factory=list)  # counterexamples, of all attacks
    series: list[Series] = field(default_factory=list)
    effects: list[dict[str, Any]] = field(default_factory=list)  # what was compared
    measures: list[dict[str, Any]] = field(default_factory=list)  # numbers, and the attack of each
    notes: list[str] = field(default_factory=list)
    conditions: list[dict[str, Any]] = field(default_factory=list)
    tables: Tables = field(default_factory=Tables)
    saboteurs: list[Saboteur] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.result["id"])


@dataclass
class Evidence:
    folder: pathlib.Path  # as it was given: the folder or the archive
    results: dict[str, Any]
    machine: dict[str, Any]
    run: dict[str, Any]
    claims: list[Claim]
    has_manifest: bool = False
    files: dict[str, int] = field(default_factory=dict)  # names in the folder, and their bytes

    def count(self, verdict: str) -> int:
        return sum(claim.result["verdict"] == verdict for claim in self.claims)

    def claim(self, name: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.id == name), None)


def add_series(claim: Claim, attack: str, log: list[tuple[str, Histogram]]) -> None:
    for tag, histogram in log:
        for series in claim.series:
            if (series.attack, series.name) == (attack, tag):
                series.histogram = series.histogram.merged(histogram)
                series.processes += 1
                break
        else:
            claim.series.append(Series(claim.id, attack, tag, histogram))


def folder_of(attack: dict[str, Any]) -> str:
    """The folder of an attack below the claim's: "" for the first process and seed."""
    process = attack.get("process", 1)
    return str(attack.get("folder", f"process{process}" if process > 1 else ""))


def shown_name(attack: dict[str, Any]) -> str:
    """The attack, and which process or seed it was where there are several."""
    below = folder_of(attack)
    return str(attack["name"]) + (", " + re.sub(r"(\d+)", r" \1", below) if below else "")


def read_attack(claim: Claim, attack: dict[str, Any], own: Folder) -> None:
    name, process = attack["name"], attack.get("process", 1)
    below = folder_of(attack)
    where = own / below if below else own
    shown = shown_name(attack)
    record = where / "attacks" / f"{name}.json"
    if not record.exists() and attack["ending"] not in RAN:
        return
    found = read_json(record)
    claim.examples += [f"{shown}: {text}" for text in found["counterexamples"]]
    claim.effects += [{**effect, "process": process, "attack": name, "folder": below}
                      for effect in found.get("effects", [])]
    claim.measures += [{**measure, "attack": shown, "record": f"{below}/{name}"}
                       for measure in found.get("measures", [])]
    claim.notes += found.get("notes", [])
    if "conditions" in found:
        claim.conditions.append({**found["conditions"], "attack": shown})
    read_tables = tables.read(claim.id, name, process, where)
    if not below.startswith("seed"):  # the figures show the first seed's tables
        claim.tables.add(read_tables)
    kept = {blocks.name: len(blocks.effects) for blocks in read_tables.blocks}
    for effect in found.get("effects", []):
        if effect["blocks"] > 0 and kept.get(effect["name"]) != effect["blocks"]:
            raise ValueError(f"{where / name}.{effect['name']}.csv is missing or cut off: its "
                             f"attack compared {effect['blocks']} blocks, but it has "
                             f"{kept.get(effect['name'], 0)}")
    log = where / f"{name}.hlog"
    if found.get("series") or log.exists():
        series = hdr.read_log(log)
        integrity.check_series(log, found.get("series", []),
                               {tag: (h.total, h.maximum) for tag, h in series})
        add_series(claim, name, series)


def read_saboteur(folder: Folder) -> Saboteur:
    said = read_json(folder / "verdict.json") if (folder / "verdict.json").exists() else {}
    saboteur = Saboteur(folder.name, said.get("must", ""), said.get("verdict", ""),
                        said.get("right"), said.get("reason") or "", 0, [], [])
    for record in sorted(folder.glob("**/attacks/*.json")):
        found = read_json(record)
        saboteur.violations += found["violations"]
        saboteur.examples += [f"{found['name']}: {text}" for text in found["counterexamples"]]
        fallen = [effect["name"] for effect in found.get("effects", [])
                  if effect["decision"] == "falls" and not effect["recorded_only"]
                  and not effect["code"]]
        saboteur.fallen += [name for name in fallen if name not in saboteur.fallen]
        noticed = bool(fallen) or found["violations"] > 0
        saboteur.attacks[found["name"]] = noticed or saboteur.attacks.get(found["name"], False)
        saboteur.values += judged(found)
    return saboteur


def read_claim(folder: Folder, result: dict[str, Any]) -> Claim:
    own = folder / str(result["id"])
    verdict = read_json(own / "verdict.json")
    integrity.check_verdict(own / "verdict.json", verdict, result)
    claim = Claim(result, read_json(own / "claim.json"), verdict.get("attacks", []))
    for attack in claim.attacks:
        read_attack(claim, attack, own)
    sabotage = own / "sabotage"
    if sabotage.is_dir():
        claim.saboteurs = [read_saboteur(one) for one in sorted(sabotage.iterdir())
                           if one.is_dir()]
    return claim


def read(path: pathlib.Path) -> Evidence:
    """Reads a folder that `tollens run` wrote, or an archive of one. ValueError says what is wrong,
    and in which file."""
    return read_folder(archive.open_folder(path), path)


def read_folder(folder: Folder, path: pathlib.Path) -> Evidence:
    """The same for a folder that is open. path: how it was named."""
    results = read_json(folder / "results.json")
    if "schema" not in results:
        raise ValueError(f"{folder / 'results.json'} has no schema; it must say schema 1")
    run = read_json(folder / "run.json")
    faults = schema.check_results(results)
    if faults:
        raise ValueError(f"{folder / 'results.json'} does not match its schema: {faults[0]}")
    machine = read_json(folder / "machine.json")
    has_manifest = integrity.check_manifest(folder, run) is not None
    try:
        for result in results["claims"]:
            if result["verdict"] not in VERDICTS:
                raise ValueError(f"{folder / 'results.json'}: {result['id']} has the unknown "
                                 f"verdict {result['verdict']!r}")
        claims = [read_claim(folder, result) for result in results["claims"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder}: the evidence lacks {error}") from error
    return Evidence(path, results, machine, run, claims, has_manifest, archive.sizes(folder))
