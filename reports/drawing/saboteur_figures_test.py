"""Tests of the small figures: python3 -m unittest reports.saboteur_figures_test."""

import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree
from typing import Any

from reports import claim_page, evidence, made_evidence, raw
from reports.drawing import saboteur_figures as small
from reports.evidence import Claim, Saboteur, Value


def number(value: float) -> Value:
    return (value, value, value)


def saboteur(*values: float, attacks: dict[str, bool] | None = None, **changed: Any) -> Saboteur:
    return Saboteur(**{"name": "late", "must": "falsified", "verdict": "falsified", "right": True,
                       "reason": "", "violations": 0, "examples": [], "fallen": [],
                       "attacks": attacks or {}, "values": list(map(number, values)), **changed})


def claim(*saboteurs: Saboteur, clean: tuple[float, ...] = (), **changed: Any) -> Claim:
    measures = [{"name": "m", "value": value, "recorded_only": False} for value in clean]
    return Claim(made_evidence.result(**changed), {},
                 [{"name": "first"}, {"name": "second"}, {"name": "first"}], measures=measures,
                 saboteurs=list(saboteurs))


class SmallFigures(unittest.TestCase):
    def parts(self, one: Claim, kind: str, key: str) -> list[float]:
        drawn = small.draw(one, one.saboteurs[0], small.attacks_of(one), small.scale_of(one))
        xml.etree.ElementTree.fromstring(drawn)
        return [float(at) for at in re.findall(rf'class="{kind}"[^>]* {key}="([\d.]+)"', drawn)]

    def test_a_fault_lies_beyond_the_threshold_and_the_rest_does_not(self) -> None:
        one = claim(saboteur(1.4), clean=(1.0, 1.01), threshold=1.05, unit="ratio")
        edge, = (float(x) for x in re.findall(r'class="edge" d="M([\d.]+)', small.draw(
            one, one.saboteurs[0], [], small.scale_of(one))))
        self.assertLess(max(self.parts(one, "without", "cx")), edge)
        self.assertGreater(min(self.parts(one, "with", "cx")), edge)
        self.assertEqual(self.parts(one, "past", "x"), [edge])
        above = claim(saboteur(1.1), clean=(3.0,), threshold=1.5, unit="speedup", direction="above")
        self.assertEqual(self.parts(above, "past", "x"), [0.0])

    def test_all_saboteurs_of_a_claim_share_an_axis(self) -> None:
        near, far = saboteur(1.1), saboteur(9.0)
        both = claim(near, far, clean=(1.0,), threshold=1.05, unit="ratio")
        alone = claim(near, clean=(1.0,), threshold=1.05, unit="ratio")
        self.assertNotEqual(self.parts(both, "with", "cx"), self.parts(alone, "with", "cx"))
        self.assertEqual(small.scale_of(both), small.scale_of(claim(
            far, near, clean=(1.0,), threshold=1.05, unit="ratio")))

    def test_errors_are_drawn_by_a_logarithm_and_infinite_ones_at_its_end(self) -> None:
        one = claim(saboteur(1e-6, float("inf")), clean=(1e-9, 0.0), threshold=1e-3,
                    unit="absolute error")
        scale = small.scale_of(one)
        assert scale is not None
        self.assertTrue(scale.log)
        self.assertEqual(max(self.parts(one, "with", "cx")), small.WIDTH - small.EDGE)
        self.assertEqual(min(self.parts(one, "without", "cx")), small.EDGE)

    def test_a_square_says_what_each_attack_did(self) -> None:
        one = claim(saboteur(attacks={"first": False, "third": True}))
        self.assertEqual(small.attacks_of(one), ["first", "second", "third"])
        self.assertIsNone(small.scale_of(one))
        places = [self.parts(one, kind, "x") for kind in ("blind", "unrun", "noticed")]
        self.assertEqual([len(found) for found in places], [1, 1, 1])
        self.assertEqual(sorted(places), places)
        text = small.sentence(one, one.saboteurs[0])
        self.assertIn("1 of 2 attacks that ran detected it: third", text)

    def test_a_report_has_one_for_each_saboteur_as_it_was_read(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            made_evidence.make(pathlib.Path(name))
            one, = evidence.read(pathlib.Path(name)).claims
        self.assertEqual(one.saboteurs[0].attacks, {"every_size": True})
        self.assertEqual(one.saboteurs[0].values, [(1.5, 1.25, 1.5), number(1.0625)])
        page = claim_page.claim_section(one, "", raw.Raw())
        self.assertEqual(page.count('<svg class="small"'), 1)
        self.assertIn("1.062 to 1.5 violations with the fault, 1.062 to 1.5 without it", page)


if __name__ == "__main__":
    unittest.main()
