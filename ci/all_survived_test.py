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


class Verdicts(unittest.TestCase):
    def refuses(self, words: str, claims: list[dict[str, Any]], exit_code: int = 0) -> None:
        with self.assertRaisesRegex(AssertionError, words):
            all_survived.check_claims(claims, exit_code, NAMES)

    def test_a_good_run_passes(self) -> None:
        self.assertIn("H1, H2, H3, H4, H5, H6, H7, H8, H9, H12, H13 survived",
                      all_survived.check_claims(run(), 0, NAMES))
        self.refuses("exit code 3", run(), 3)
        self.refuses("exit code 1", run(), 1)

    def test_what_the_soft_device_can_test_must_survive(self) -> None:
        for name in NAMES:
            if name in all_survived.NEEDS_GPU:
                continue
            for code in ("needs_gpu", "not_implemented", "no_pools"):
                self.refuses(f"^{name} must survive", run(**{name: {**IDLE, "code": code}}))
            for verdict, code in (("falsified", None), ("inconclusive", "part_not_tested")):
                self.refuses(f"^{name} must survive",
                             run(**{name: {"verdict": verdict, "code": code}}), 3)

    def test_a_claim_about_time_alone_may_be_undecided(self) -> None:
        for name in NAMES:
            if name == "H4":
                self.assertIn("H4 unfit_spread",
                              all_survived.check_claims(run(H4=UNDECIDED), 3, NAMES))
            else:
                self.refuses(f"^{name} must", run(**{name: UNDECIDED}), 3)

    def test_what_needs_a_gpu_says_so_after_its_mechanics_ran(self) -> None:
        for name in all_survived.NEEDS_GPU:
            for changed in ({"verdict": "survived", "code": None}, {"code": "not_implemented"},
                            {"verdict": "falsified", "code": None}):
                self.refuses(f"^{name} must say that it needs a GPU", run(**{name: changed}))
            self.refuses(f"^{name} tested nothing", run(**{name: {"samples": 0}}))

    def test_saboteurs_are_noticed(self) -> None:
        missed = {"severity": {"caught": 1, "of": 2, "untold": 0}}
        undecided = {"severity": {"caught": 1, "of": 2, "untold": 1}}
        blind = {"severity": {"caught": 0, "of": 2, "untold": 2}}
        for name in ("H3", "H4"):
            self.refuses("saboteurs noticed", run(**{name: missed}))
            self.refuses("no severity", run(**{name: {"severity": None}}))
            self.refuses("tested nothing", run(**{name: {"samples": 0}}))
            self.refuses("saboteurs noticed",
                         run(**{name: {"severity": {"caught": 1, "of": 1, "untold": 0}}}))
            self.refuses("borderline", run(**{name: {"borderline": {"right": 1, "of": 2}}}))
        self.refuses("undecided", run(H3=undecided), 3)
        self.assertTrue(all_survived.check_claims(run(H4=undecided), 3, NAMES))
        self.refuses("noticed nothing", run(H4=blind), 3)
        self.assertTrue(all_survived.check_claims(run(H4={**UNDECIDED, **blind}), 3, NAMES))

    def test_each_claim_is_there_once(self) -> None:
        self.refuses("the claims are", run()[1:])
        self.refuses("the claims are", [*run(), run()[0]])

    def test_a_run_of_one_claim_has_that_claim(self) -> None:
        self.assertEqual(all_survived.check_claims(run()[3:4], 0, ["H4"]), "H4 survived")
        with self.assertRaisesRegex(AssertionError, "the claims are"):
            all_survived.check_claims(run()[4:5], 0, ["H4"])


if __name__ == "__main__":
    unittest.main()
