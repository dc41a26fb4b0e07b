"""Tests of a report's summary and of its baseline: python3 -m unittest reports.summary_test."""

import contextlib
import io
import pathlib
import re
import tempfile
import unittest
from typing import Any

from reports import __main__ as report
from reports import history, made_evidence, summary
from reports.drawing import spark
from reports.evidence import Claim, Evidence

RATIO = {"title": "Launches", "verdict": "survived", "reason": None, "unit": "ratio",
         "threshold": 1.05, "severity": None}


def run_of(**verdicts: str) -> Evidence:
    claims = [Claim(made_evidence.result(name, verdict=verdict, reason=f"why {name}"), {}, [])
              for name, verdict in verdicts.items()]
    return Evidence(pathlib.Path(), {}, {}, {}, claims)


class Sentences(unittest.TestCase):
    def test_the_worst_verdict_is_the_sentence(self) -> None:
        for verdicts, words in (
                (("survived", "falsified", "inconclusive"), "1 of 3 claims falsified: H2"),
                (("survived", "inconclusive"), "No claim falsified, 1 of 2 inconclusive: H2"),
                (("survived", "not_tested"), "1 of 2 claims survived, 1 not tested: H2"),
                (("not_tested",) * 2, "None of 2 claims tested"),
                (("survived",) * 2, "All 2 claims survived"),
                (("survived",), "The claim survived")):
            run = run_of(**{f"H{n}": verdict for n, verdict in enumerate(verdicts, 1)})
            self.assertEqual(summary.sentence(run), words)

    def test_many_names_are_cut_and_the_count_stays(self) -> None:
        run = run_of(**{f"H{n}": "falsified" for n in range(1, 14)})
        self.assertEqual(summary.sentence(run),
                         "13 of 13 claims falsified: H1, H2, H3, H4, H5, H6, …")

    def test_only_what_needs_a_look_is_listed(self) -> None:
        run = run_of(H1="survived", H2="falsified", H3="inconclusive")
        found = summary.attention(run, history.History(), "run2-")
        self.assertEqual(re.findall(r'href="#(.*?)"', found), ["run2-H2", "run2-H3"])
        self.assertIn("falsified: why H2", found)
        self.assertEqual(summary.attention(run_of(H1="survived"), history.History(), ""), "")

    def test_saboteurs_are_added_up(self) -> None:
        run = run_of(H1="survived", H2="survived")
        self.assertEqual(summary.saboteurs(run), (4, 6))
        self.assertIn('<li class="falsified"><b>4 of 6</b>', summary.tiles(run, history.History()))


class Sparks(unittest.TestCase):
    def heights(self, *effects: float, tolerance: float = 0.025) -> list[float]:
        drawn = spark.draw([made_evidence.result(effect=effect, threshold=1.05, unit="ratio")
                            for effect in effects], tolerance)
        return [float(point.split()[1]) for point in
                re.findall(r'class="run" d="M(.*?)"', drawn)[0].split("L")]

    def test_a_change_within_the_tolerance_looks_small(self) -> None:
        flat, steep = self.heights(1.0, 1.01), self.heights(1.0, 1.3)
        self.assertLess(abs(flat[1] - flat[0]), 3)
        self.assertGreater(steep[0] - steep[1], 8)
        self.assertEqual(len(set(self.heights(0.0, 0.0, 0.0, tolerance=0.0))), 1)

    def test_one_value_is_no_trend(self) -> None:
        self.assertEqual(spark.draw([made_evidence.result(effect=1.0)], 0.1), "")


class Baselines(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)

    def make(self, name: str, effect: float, **run: Any) -> pathlib.Path:
        row = made_evidence.result("H11", **{**RATIO, "effect": effect, "low": effect - 0.001,
                                             "high": effect + 0.001})
        made_evidence.make(self.top / name, row, **run)
        return self.top / name

    def report(self, *words: object) -> tuple[int, str, str]:
        """Its exit code, what it said, and the page."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = report.main([*map(str, words), "--no-png", "--out", str(self.top / "out")])
        page = self.top / "out/report.html"
        return code, said.getvalue(), page.read_text() if page.exists() else ""

    def test_a_baseline_says_what_got_worse(self) -> None:
        old, new = self.make("old", 1.0), self.make("new", 1.04)
        code, _, page = self.report(new, "--baseline", old)
        self.assertEqual(code, 0)
        for words in ("1 WORSE (H11)", '<span class="worse">WORSE</span>', 'class="spark',
                      "<b>1</b> worse than the baseline",
                      "worse than the baseline, by more than the tolerance"):
            self.assertIn(words, page)
        self.assertIn("| WORSE |", (self.top / "out/report.md").read_text())
        self.assertNotIn("baseline", self.report(new)[2].split('id="H11"')[0].split("</style>")[1])

    def test_what_cannot_be_compared_is_no_baseline(self) -> None:
        new = self.make("new", 1.0)
        code, said, page = self.report(new, "--baseline", self.make("full", 1.0, mode="full"))
        self.assertEqual((code, page, said.count("\n")), (2, "", 1))
        self.assertIn("is a full run", said)
        self.assertEqual(self.report(new, "--baseline", self.top / "absent")[0], 2)

    def test_a_history_is_the_earlier_runs_of_the_same_kind(self) -> None:
        for at, effect in enumerate((1.0, 1.01, 1.02)):
            self.make(f"run{at}", effect, begin_s=1.7e9 + 60 * at)
        self.make("full", 1.5, mode="full", begin_s=1.7e9)
        self.make("later", 1.5, begin_s=1.8e9)
        (self.top / "interrupted").mkdir()
        (self.make("damaged", 1.5, begin_s=1.7e9) / "results.json").write_text("{")
        new = self.make("new", 1.02, begin_s=1.75e9)
        code, _, page = self.report(new, "--history", self.top)
        self.assertEqual(code, 0)
        self.assertIn("H11 in 4 runs: first 1, last 1.02 ratio", page)
        self.assertIn("Since the baseline, unknown commit, 2023-11-14 22:15 UTC: 1 same.", page)
        _, _, page = self.report(new, "--history", self.top, "--baseline", self.top / "run1")
        self.assertIn("H11 in 3 runs", page)
        self.assertIn("22:14 UTC", page)

    def test_a_history_of_nothing_is_none(self) -> None:
        code, _, page = self.report(self.make("only/new", 1.0), "--history", self.top / "only")
        self.assertEqual(code, 0)
        self.assertNotIn("Since the baseline", page)


if __name__ == "__main__":
    unittest.main()
