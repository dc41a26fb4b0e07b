"""Tests of two runs side by side: python3 -m unittest reports.side_by_side_test."""

import pathlib
import re
import tempfile
import unittest
from typing import Any

from reports import evidence, made_evidence, side_by_side
from reports.drawing import figure, svg
from reports.evidence import Claim, Evidence
from reports.drawing.figure import Axis, Figure, Line


class SideBySide(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)

    def make(self, name: str, **row: Any) -> Evidence:
        made_evidence.make(self.top / name, made_evidence.result("H11", **row))
        return evidence.read(self.top / name)

    def page(self, *runs: Evidence) -> str:
        return side_by_side.render(*runs, ["H11"], self.top)

    def test_figures_share_their_axes(self) -> None:
        def drawn(*values: float) -> Figure:
            return Figure("n", "t", "a", Axis(), Axis(), [Line("", [1.0, 2.0], list(values))])

        one, other = side_by_side.same_axes(drawn(1.0, 2.0), drawn(5.0, 100.0))
        self.assertEqual(figure.span(one, "y"), figure.span(other, "y"))
        self.assertLess(figure.span(one, "y")[0], 1.0)
        self.assertGreater(figure.span(one, "y")[1], 100.0)
        ticks = [re.findall(r'text-anchor="end">(.*?)<', svg.draw(each)) for each in (one, other)]
        self.assertEqual(ticks[0], ticks[1])

    def test_a_figure_of_one_run_stands_beside_nothing(self) -> None:
        first, last = self.make("a"), self.make("b")
        whole = side_by_side.pairs(first.claims[0], last.claims[0])
        last.claims[0].series = []
        some = side_by_side.pairs(first.claims[0], last.claims[0])
        self.assertEqual(len(whole), len(some))
        self.assertTrue(all(one and other for one, other in whole))
        self.assertGreater(sum(other is None for _, other in some), 0)
        self.assertEqual(side_by_side.pairs(None, None), [])

    def test_effects_share_an_axis(self) -> None:
        page = self.page(self.make("a", effect=1.0, threshold=1.05, unit="ratio"),
                         self.make("b", effect=2.0, threshold=1.05, unit="ratio"))
        edges = re.findall(r'class="edge" d="M([\d.]+)', page)
        dots = [float(x) for x in re.findall(r'class="at" cx="([\d.]+)"', page)]
        self.assertEqual((len(edges), len(set(edges))), (2, 1))
        self.assertLess(dots[0], float(edges[0]))
        self.assertGreater(dots[1], float(edges[0]))

    def test_saboteurs_are_listed_where_the_runs_differ(self) -> None:
        first, last = self.make("a"), self.make("b")
        self.assertNotIn(">saboteur</th>", self.page(first, last))
        last.claims[0].saboteurs[0].verdict = "survived"
        self.assertIn("<td>copy flip</td><td>falsified</td><td>survived</td>",
                      self.page(first, last))

    def test_a_claim_of_one_run_says_so(self) -> None:
        first, last = self.make("a"), self.make("b")
        first.claims = []
        self.assertIn("This run does not have the claim", self.page(first, last))

    def test_what_is_the_same_is_folded(self) -> None:
        first = self.make("a", effect=1.0, verdict="survived")
        self.assertIn("<details><summary>", self.page(first, first))
        self.assertIn("<details open><summary>", self.page(first, self.make("b", effect=9.0)))

    def test_a_report_beside_the_evidence_is_linked(self) -> None:
        first, last = self.make("a b"), self.make("c")
        (self.top / "a b/report").mkdir()
        (self.top / "a b/report/report.html").write_text("<html></html>")
        self.assertEqual(re.findall(r'<a href="([^#].*?)"', self.page(first, last)),
                         ["a%20b/report/report.html"])


if __name__ == "__main__":
    unittest.main()
