"""One evidence folder, read whole."""

import json
import pathlib
from dataclasses import dataclass, field
from typing import Any

from reports.hdr import Histogram, read_log
from reports.walks import Walk, read_walks

VERDICTS = ("survived", "falsified", "inconclusive", "not_tested")


@dataclass
class Series:
    claim: str
    attack: str
    name: str
    histogram: Histogram

    @property
    def file_name(self) -> str:
        return f"{self.claim}_{self.attack}_{self.name}.png".replace(" ", "_")


@dataclass
class Claim:
    result: dict[str, Any]   # its row of results.json
    words: dict[str, Any]    # claim.json
    attacks: list[dict[str, Any]]
    examples: list[str]      # counterexamples, of all attacks
    series: list[Series] = field(default_factory=list)
    effects: list[dict[str, Any]] = field(default_factory=list)  # what was compared
    measures: list[dict[str, Any]] = field(default_factory=list)  # numbers, and whose they are
    walks: list[Walk] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.result["id"])


@dataclass
class Evidence:
    folder: pathlib.Path
    results: dict[str, Any]
    machine: dict[str, Any]
    run: dict[str, Any]
    claims: list[Claim]

    def count(self, verdict: str) -> int:
        return sum(claim.result["verdict"] == verdict for claim in self.claims)


def read_json(path: pathlib.Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} is no JSON object")
    return data


def read_claim(folder: pathlib.Path, result: dict[str, Any]) -> Claim:
    own = folder / str(result["id"])
    verdict = read_json(own / "verdict.json")
    claim = Claim(result, read_json(own / "claim.json"), verdict.get("attacks", []), [])
    for attack in claim.attacks:
        name, process = attack["name"], attack.get("process", 1)
        where = own if process == 1 else own / f"process{process}"
        if process > 1:
            attack["name"] = f"{name} process {process}"
        record = where / "attacks" / f"{name}.json"
        if record.exists():
            found = read_json(record)
            claim.examples += [f"{attack['name']}: {text}" for text in found["counterexamples"]]
            claim.effects += [{**effect, "process": process}
                              for effect in found.get("effects", [])]
            claim.measures += [{**measure, "attack": attack["name"]}
                               for measure in found.get("measures", [])]
            claim.notes += found.get("notes", [])
            claim.walks += read_walks(claim.id, name, where)
        log = where / f"{name}.hlog"
        if log.exists():
            claim.series += [Series(claim.id, attack["name"], tag, histogram)
                             for tag, histogram in read_log(log)]
    return claim


def read(folder: pathlib.Path) -> Evidence:
    """Reads a folder that `tollens run` wrote. ValueError says what is wrong with it."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder")
    results = read_json(folder / "results.json")
    if results.get("schema") != 1:
        raise ValueError(f"{folder / 'results.json'} is not of schema 1")
    try:
        for result in results["claims"]:
            if result["verdict"] not in VERDICTS:
                raise ValueError(f"{folder / 'results.json'}: {result['id']} has the unknown "
                                 f"verdict {result['verdict']!r}")
        claims = [read_claim(folder, result) for result in results["claims"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder}: the evidence lacks {error}") from error
    return Evidence(folder, results, read_json(folder / "machine.json"),
                    read_json(folder / "run.json"), claims)
