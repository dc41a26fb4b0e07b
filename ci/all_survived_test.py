#!/usr/bin/env python3
"""Tests of all_survived.py: which verdicts of a run on the soft device pass."""

import unittest
from typing import Any

import all_survived

NAMES = [f"H{number}" for number in range(1, 14)]
IDLE = {"verdict": "not_tested", "code": "needs_gpu", "severity": None}
UNDECIDED = {"verdict": "inconclusive", "code": "unfit_spread"}


def run(**changed: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims of a good run, some of them changed: H4=UNDECIDED."""
    claims = []
    for name in NAMES:
        claim = {"id": name, "verdict": "survived", "code": None, "reason": "a reason",
                 "severity": {"caught": 2, "of": 2, "untold": 0}, "borderline": None, "samples": 7}
        claim.update(IDLE if name in ("H10", "H11") else {})
        claims.append({**claim, **changed.get(name, {})})
    return claims


def noticed(caught: int, of: int, untold: int = 0) -> dict[str, Any]:
    return {"severity": {"caught": caught, "of": of, "untold": untold}}


SURVIVE = [name for name in NAMES if name not in all_survived.NEEDS_GPU]
# Claims, and how each fault is refused.
REFUSED: tuple[tuple[Any, list[tuple[str, dict[str, Any]]]], ...] = (
    (SURVIVE, [("must survive", {**IDLE, "code": code}) for code in (
        "needs_gpu", "not_implemented", "no_pools")]),
    (SURVIVE, [("must survive", {"verdict": "falsified"}),
               ("must survive", {"verdict": "inconclusive", "code": "part_not_tested"})]),
    ([name for name in NAMES if name != "H4"], [("must", UNDECIDED)]),
    (all_survived.NEEDS_GPU, [
        *(("must say that it needs a GPU", changed) for changed in (
            {"verdict": "survived", "code": None}, {"code": "not_implemented"},
            {"verdict": "falsified", "code": None})), ("tested nothing", {"samples": 0})]),
    (("H3", "H4"), [("saboteurs noticed", noticed(1, 2)), ("saboteurs noticed", noticed(1, 1)),
                    ("no severity", {"severity": None}), ("tested nothing", {"samples": 0}),
                    ("borderline", {"borderline": {"right": 1, "of": 2}})]),
    (("H3",), [("undecided", noticed(1, 2, 1))]),
    (("H4",), [("noticed nothing", noticed(0, 2, 2))]))


class Verdicts(unittest.TestCase):
    def refuses(self, words: str, claims: list[dict[str, Any]], exit_code: int = 0) -> None:
        with self.assertRaisesRegex(AssertionError, words):
            all_survived.check_claims(claims, exit_code, NAMES)

    def passes(self, said: str, exit_code: int, **changed: dict[str, Any]) -> None:
        self.assertIn(said, all_survived.check_claims(run(**changed), exit_code, NAMES))

    def test_a_good_run_passes(self) -> None:
        self.passes("H1, H2, H3, H4, H5, H6, H7, H8, H9, H12, H13 survived", 0)
        self.refuses("exit code 3", run(), 3)
        self.refuses("exit code 1", run(), 1)

    def test_each_fault_of_a_claim_is_refused(self) -> None:
        for names, faults in REFUSED:
            for name in names:
                for words, changed in faults:
                    exit_code = 3 if changed.get("verdict") == "inconclusive" else 0
                    self.refuses(f"^{name}.*{words}", run(**{name: changed}), exit_code)

    def test_a_claim_about_time_alone_may_be_undecided(self) -> None:
        self.passes("H4 unfit_spread", 3, H4=UNDECIDED)
        self.passes("H4", 3, H4=noticed(1, 2, 1))
        self.passes("H4", 3, H4={**UNDECIDED, **noticed(0, 2, 2)})

    def test_each_claim_is_there_once(self) -> None:
        self.refuses("the claims are", run()[1:])
        self.refuses("the claims are", [*run(), run()[0]])

    def test_a_run_of_one_claim_has_that_claim(self) -> None:
        self.assertEqual(all_survived.check_claims(run()[3:4], 0, ["H4"]), "H4 survived")
        with self.assertRaisesRegex(AssertionError, "the claims are"):
            all_survived.check_claims(run()[4:5], 0, ["H4"])


if __name__ == "__main__":
    unittest.main()
