"""The demands of the specification, the checks of each, and its state.

    python3 -m reports.requirements                 whether requirements.toml makes sense
    python3 -m reports.requirements --ran FOLDER    and whether each named check is there and ran,
                                                    by what ci/check left in the folder

A test that this machine cannot run is no error: its demand is reported as "not run here" with the
reason that the test gave, if reports/skips.py has that reason and it is true of this machine. So is
one of which ci/check skipped a step or was not asked to run it. A step that failed, or of which
ci/check says nothing, is an error.
"""

import argparse
import fnmatch
import pathlib
import re
import sys
from collections.abc import Iterable
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib  # type: ignore[no-redef]

from . import evidence
from .evidence import Claim
from .skips import may_skip
from .toml_rows import check_keys, rows_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "hypotheses/requirements.toml"
SOURCES = ("000", "001", "002", "003", "004", "Fail closed")
CHECK = re.compile(r"H[1-9][0-9]?|step [a-z-]+(: (\w+)::(test_\w+))?|[a-z0-9_]+/[a-z0-9_*]+")
STANDINGS = ("peer-reviewed", "documentation")
IDENTIFIER = re.compile(r"doi:10\.\d{4}/\S+|arXiv:\d{4}\.\d{5}|https://\S+")
WORST = ("falsified", "inconclusive", "not_tested", "survived")
HEADINGS = ("", "requirement", "source", "state", "checked by")


def has_test(file: str, name: str) -> bool:
    return any(f"def {name}(" in path.read_text(encoding="utf-8") for room in ("ci", "reports")
               for path in (ROOT / room).rglob(f"{file}.py"))


def check_demand(demand: dict[str, Any]) -> None:
    check_keys("demand", demand, ("id", "text", "source"), ("checks",), ("open",))
    name = demand["id"]
    if set(demand) - {"id", "text", "source", "checks", "open"}:
        raise ValueError(f"{name} has a key that is not known")
    if not demand["source"].startswith(SOURCES):
        raise ValueError(f"{name} is of none of the documents {', '.join(SOURCES)}")
    for check in demand["checks"]:
        found = CHECK.fullmatch(check)
        if not found:
            raise ValueError(f'{name}: {check!r} is no "suite/test", "H4" or "step NAME"')
        if found[1] and not has_test(found[2], found[3]):
            raise ValueError(f"{name}: there is no {found[3]} in {found[2]}.py")
    if not demand["checks"] and not demand.get("open"):
        raise ValueError(f"{name} is checked by nothing, and does not say that it is open")


def load(path: pathlib.Path = FILE) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Demands and principles. ValueError says what is wrong."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    seen = set()
    try:
        demands, principles = rows_of(found, "demand"), rows_of(found, "principle")
        for principle in principles:
            check_keys("principle", principle, ("name", "decision"), ("see",))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    for demand in demands:
        try:
            check_demand(demand)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        if demand["id"] in seen:
            raise ValueError(f"{path}: {demand['id']} is there twice")
        seen.add(demand["id"])
    for principle in principles:
        for place in principle["see"]:
            if not (ROOT / place).exists():
                raise ValueError(f"{path}: {principle['name']} is to be seen in {place}, which is "
                                 "not there")
    return demands, principles


def citations(path: pathlib.Path = FILE) -> list[dict[str, Any]]:
    """What the specification cites, in its order. ValueError says what is wrong."""
    found = rows_of(tomllib.loads(path.read_text(encoding="utf-8")), "citation")
    for number, one in enumerate(found, 1):
        check_keys("citation", one, ("title", "found", "standing", "identifier"),
                   optional=("instead",))
        if one.get("number") != number or not all(one.get(key) for key in ("title", "found")):
            raise ValueError(f"{path}: citation {number} has no number, no title or nothing found")
        if one.get("standing") not in STANDINGS or not IDENTIFIER.fullmatch(one["identifier"]):
            raise ValueError(f"{path}: citation {number} has no standing, or leads nowhere")
        place = re.search(r"reports/published/\S+", one.get("instead", ""))
        if place and not (ROOT / place.group()).exists():
            raise ValueError(f"{path}: citation {number}: there is no {place.group()}")
    return found


def citation_row(one: dict[str, Any]) -> tuple[str, ...]:
    instead = f". Used instead: {one['instead']}" if "instead" in one else ""
    return (str(one["number"]), one["title"], one["found"] + instead, one["standing"],
            one["identifier"])


# ---- the state of each demand -------------------------------------------------------------------

def state(demand: dict[str, Any], verdicts: dict[str, str]) -> str:
    """A word and, where it is open, why. Verdicts are by claim; what no run tested is missing."""
    if demand.get("open"):
        return f"open: {demand['open']}"
    claims = [check.split("/")[0].upper().replace("H0", "H") for check in demand["checks"]
              if re.fullmatch(r"H\d+|h\d\d/.*", check)]
    if not claims:
        return "tested"
    words = [verdicts.get(claim, "not_tested") for claim in claims]
    return min(words, key=WORST.index).replace("_", " ")


def verdicts_of(claims: Iterable[Claim]) -> dict[str, str]:
    return {claim.id: str(claim.result["verdict"]) for claim in claims}


def rows(verdicts: dict[str, str]) -> list[tuple[str, ...]]:
    """The matrix: what is demanded, where, and its state."""
    return [(d["id"], d["text"], d["source"], state(d, verdicts), ", ".join(d["checks"]))
            for d in load()[0]]


def summary(verdicts: dict[str, str]) -> str:
    counts: dict[str, int] = {}
    for row in rows(verdicts):
        word = row[3].split(":")[0]
        counts[word] = counts.get(word, 0) + 1
    order = ("tested", "survived", "falsified", "inconclusive", "not tested", "open")
    return ", ".join(f"{counts[word]} {word}" for word in order if word in counts)


# ---- whether the checks ran ---------------------------------------------------------------------

def read_tap(folder: pathlib.Path) -> dict[str, str]:
    """Each test of the plain programs, and why it did not run; "" where it did."""
    files = sorted(folder.glob("plain-*.tap"))
    if not files:
        raise ValueError(f"{folder} has no plain-*.tap: the step tests of ci/check leaves them")
    ran: dict[str, str] = {}
    for path in files:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            found = re.match(r"(?:not )?ok - (\w+)::(\w+)", line)
            if found:
                name = f"{found.group(1)}/{found.group(2)}"
                _, skipped, words = line.partition("# SKIP")
                reason = skipped and (words.strip() or "skipped without a reason")
                ran[name] = reason and ran.get(name, reason)
    return ran


def read_attacks(folder: pathlib.Path) -> dict[str, str]:
    """The same of the run's attacks; those that a device could not judge ran all the same."""
    attacks = {}
    for claim in evidence.read(folder / "evidence").claims:
        reasons = {f"h{int(claim.id[1:]):02}/{attack['name']}":
                   "it never ran" if attack["ending"] == "never_ran" else ""
                   for attack in claim.attacks}
        attacks.update(reasons)
        attacks[claim.id] = "" if "" in reasons.values() else "none of its attacks ran"
    return attacks


def read_steps(folder: pathlib.Path) -> tuple[dict[str, str], set[str]]:
    """Each step of ci/check, and why it did not run, "" where it did and passed; and those that
    failed."""
    def lines(name: str) -> list[str]:
        path = folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []

    idle = [line.partition(" ") for line in (*lines("skipped"), *lines("left-out"))]
    passed = {name: reason or "skipped without a reason" for name, _, reason in idle}
    passed.update(dict.fromkeys(lines("ran"), ""))
    failed = set(lines("failed"))
    return {name: reason for name, reason in passed.items() if name not in failed}, failed


def step_fault(name: str, passed: dict[str, str], failed: set[str]) -> str:
    """What is wrong with a step; "" where it passed or was left out with a reason."""
    if name in failed:
        return f"step {name} failed"
    return "" if name in passed else f"step {name} did not run"


def missing(demands: list[dict[str, Any]], ran: dict[str, str], passed: dict[str, str],
            failed: set[str]) -> tuple[list[str], list[str]]:
    """A sentence for each check that is not there, failed, or should have run and did not, and one
    for each demand of which a check cannot run on this machine or was left out."""
    wrong, not_here = [], []
    for demand in demands:
        reasons = []
        for check in demand["checks"]:
            if check.startswith("step "):
                name = check[5:].partition(":")[0]
                fault = step_fault(name, passed, failed)
                wrong += [f"{demand['id']}: {fault}"] if fault else []
                reasons += [f"{check}: {passed[name]}"] if passed.get(name) else []
                continue
            names = fnmatch.filter(ran, check)
            if not names:
                wrong.append(f"{demand['id']}: there is no {check}")
            idle = [name for name in names if ran[name] and not may_skip(ran[name])]
            wrong += [f"{demand['id']}: {name} should have run: {ran[name]}" for name in idle]
            if names and not idle and all(ran[name] for name in names):
                reasons.append(f"{check}: {ran[names[0]]}")
        if reasons:
            not_here.append(f"not run here: {demand['id']}: {'; '.join(reasons)}")
    return wrong, not_here


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ran", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    idle = ""
    try:
        demands, _ = load()
        if arguments.ran is not None:
            ran = {**read_tap(arguments.ran), **read_attacks(arguments.ran)}
            wrong, not_here = missing(demands, ran, *read_steps(arguments.ran))
            for sentence in (*not_here, *wrong):
                print(sentence)
            if wrong:
                return 1
            idle = f", {len(not_here)} not run here" if not_here else ""
    except (ValueError, OSError) as error:
        print(f"requirements: {error}", file=sys.stderr)
        return 2
    waiting = sum(bool(demand.get("open")) for demand in demands)
    print(f"summary: {len(demands)} demands, {waiting} of them open{idle}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
