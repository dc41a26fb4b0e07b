#!/usr/bin/env python3
"""Whether an evidence folder of the soft device holds together, and every claim that the soft
device can test survived at full severity.

    ci/all_survived.py FOLDER           of a run of all claims
    ci/all_survived.py FOLDER H4 ...    of a run of these

A claim about time may be inconclusive here: the machine that checks is shared, and says so by a
code. Its saboteurs may be undecided for the same reason, but at least one must be noticed where the
claim survived. What needs a GPU must say so, after its mechanics ran. No other claim may be
inconclusive or not tested, and none may be falsified.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from reports import schema, thresholds  # noqa: E402  (the other folder)

TIMED = ("H4",)
NEEDS_GPU = ("H10", "H11")
# Why a machine cannot tell a time (hyp_verdict_could_not_tell).
COULD_NOT_TELL = ("unfit_control", "unfit_spread", "unfit_discarded", "unfit_timer", "unfit_clock",
                  "undecided", "unconfirmed")


def is_undecided(claim: dict[str, Any]) -> bool:
    """Whether a claim about time is inconclusive for a reason that the machine may have."""
    return (claim["id"] in TIMED and claim["verdict"] == "inconclusive"
            and claim["code"] in COULD_NOT_TELL)


def check_claim(claim: dict[str, Any]) -> None:
    name, found = claim["id"], f"{claim['verdict']}: {claim['code']}: {claim['reason']}"
    assert claim["samples"] > 0, f"{name} tested nothing: {found}"
    if name in NEEDS_GPU:
        assert (claim["verdict"], claim["code"]) == ("not_tested", "needs_gpu"), (
            f"{name} must say that it needs a GPU: {found}")
        return
    assert claim["verdict"] == "survived" or is_undecided(claim), f"{name} must survive: {found}"
    severity, pair = claim["severity"], claim["borderline"]
    assert severity, f"{name} has no severity"
    caught, untold = severity["caught"], severity["untold"]
    assert caught + untold == severity["of"] >= 2, f"{name}: saboteurs noticed: {severity}"
    assert name in TIMED or untold == 0, f"{name}: saboteurs undecided: {severity}"
    assert caught > 0 or is_undecided(claim), f"{name} survived and noticed nothing: {severity}"
    assert pair is None or pair["right"] == pair["of"], f"{name}: borderline {pair}"


def check_claims(claims: list[dict[str, Any]], exit_code: int, expected: list[str]) -> str:
    """A summary; AssertionError says what may not be so."""
    names = [claim["id"] for claim in claims]
    assert names == expected, f"the claims are {names}, expected {expected}"
    for claim in claims:
        check_claim(claim)
    undecided = [claim for claim in claims if is_undecided(claim)]
    doubts = undecided or [c for c in claims if (c["severity"] or {}).get("untold", 0) > 0]
    allowed = (0, 3) if doubts else (0,)
    assert exit_code in allowed, f"the run ended with exit code {exit_code}"
    summary = ", ".join(c["id"] for c in claims if c["verdict"] == "survived") + " survived"
    return summary + "".join(f", {claim['id']} {claim['code']}" for claim in undecided)


def check(folder: pathlib.Path, expected: list[str]) -> str:
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    faults = schema.check_results(results)
    assert not faults, f"results.json is not as its schema says: {faults}"
    assert results["device"]["kind"] == "soft", f"the device is {results['device']}"
    suites = xml.etree.ElementTree.parse(folder / "junit.xml").getroot().findall("testsuite")
    assert len(suites) == len(results["claims"]), f"junit.xml has {len(suites)} suites"
    return check_claims(results["claims"], run["exit_code"], expected)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    try:
        print("summary:", check(pathlib.Path(sys.argv[1]),
                                sys.argv[2:] or list(thresholds.load()[0])))
    except (AssertionError, OSError, KeyError, ValueError,
            xml.etree.ElementTree.ParseError) as error:
        print(f"{sys.argv[1]}: {error}")
        sys.exit(1)
