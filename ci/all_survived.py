#!/usr/bin/env python3
"""Whether an evidence folder of the soft device holds together, and all that was tested survived
at full severity.

    ci/all_survived.py FOLDER

A claim about time may be inconclusive here: the machine that checks is shared, and says so by a
code. It is never falsified, and no saboteur may come out wrong; one that the machine could not tell
is allowed where the claim itself was not told either, or was told by a hair.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from reports import schema, thresholds  # noqa: E402  (the other folder)

# Why a machine cannot tell a time (hyp_verdict_could_not_tell).
TIMED = ("H4", "H10", "H11")
COULD_NOT_TELL = ("unfit_control", "unfit_spread", "unfit_discarded", "unfit_timer", "unfit_clock",
                  "undecided", "unconfirmed")


def check(folder: pathlib.Path) -> str:
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    faults = schema.check_results(results)
    assert not faults, f"results.json is not as its schema says: {faults}"
    claims = results["claims"]
    suites = xml.etree.ElementTree.parse(folder / "junit.xml").getroot().findall("testsuite")
    names = [claim["id"] for claim in claims]
    assert names == list(thresholds.load()[0]), f"the claims are {names}"
    assert len(suites) == len(names), f"junit.xml has {len(suites)} suites"
    survived = [claim for claim in claims if claim["verdict"] == "survived"]
    idle = [claim for claim in claims if claim["verdict"] == "not_tested"]
    undecided = [claim for claim in claims if claim["code"] in COULD_NOT_TELL]
    for claim in undecided:
        assert claim["verdict"] == "inconclusive" and claim["processes"] >= 1, claim["id"]
        assert claim["id"] in TIMED, f"{claim['id']} is not timed: {claim['reason']}"
    assert len(survived) + len(idle) + len(undecided) == len(names), (
        "a claim was falsified, or is inconclusive without an excuse: "
        f"{[(c['id'], c['verdict'], c['reason']) for c in claims]}")
    doubts = undecided or [c for c in survived if (c["severity"] or {}).get("untold", 0) > 0]
    allowed = (0, 3) if doubts else (0,)
    assert run["exit_code"] in allowed, f"the run ended with exit code {run['exit_code']}"
    expected = set(names) - set(TIMED)
    missing = expected - {claim["id"] for claim in survived}
    assert not missing, f"{', '.join(sorted(missing))} must survive"
    for claim in survived + undecided:
        severity, pair = claim["severity"], claim["borderline"]
        assert severity and severity["caught"] + severity["untold"] == severity["of"] >= 2, (
            f"{claim['id']}: saboteurs noticed: {severity}")
        assert claim["id"] in TIMED or severity["untold"] == 0, f"{claim['id']}: {severity}"
        assert pair is None or pair["right"] == pair["of"], f"{claim['id']}: borderline {pair}"
        assert claim["samples"] > 0, f"{claim['id']} survived and tested nothing"
    for claim in idle:
        assert claim["code"] in ("not_implemented", "needs_gpu"), (
            f"{claim['id']}: {claim['reason']}")
    summary = ", ".join(claim["id"] for claim in survived) + " survived"
    return summary + "".join(f", {claim['id']} {claim['code']}" for claim in undecided)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    try:
        print("summary:", check(pathlib.Path(sys.argv[1])))
    except (AssertionError, OSError, KeyError, ValueError,
            xml.etree.ElementTree.ParseError) as error:
        print(f"{sys.argv[1]}: {error}")
        sys.exit(1)
