"""Tests of comparisons: python3 -m unittest reports.compare_test, from the top folder."""

import contextlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from reports import answer, archive, change, compare, evidence, made_evidence, trend

RATIO = {"title": "Launches", "verdict": "survived", "reason": None, "unit": "ratio",
         "threshold": 1.05, "severity": None}


def row(effect: float, wide: float = 0.001, **changed: Any) -> dict[str, Any]:
    return made_evidence.result("H11", **{**RATIO, "effect": effect, "low": effect - wide,
                                          "high": effect + wide, **changed})


class ChangePoints(unittest.TestCase):
    def test_levels_are_found_where_they_begin(self) -> None:
        self.assertEqual(trend.change_points([1.0] * 6 + [1.2] * 5, 0.025), [6])
        self.assertEqual(trend.change_points([1.0] * 4 + [1.2] * 4 + [0.9] * 4, 0.025), [4, 8])

    def test_noise_drift_within_the_tolerance_and_outliers_are_none(self) -> None:
        draw = random.Random(7)
        for _ in range(50):
            values = [1.0 + draw.gauss(0, 0.004) for _ in range(20)]
            self.assertEqual(trend.change_points(values, 0.025), [])
        self.assertEqual(trend.change_points([1.0] * 5 + [1.4] + [1.0] * 5, 0.025), [])
        self.assertEqual(trend.change_points([1.0] * 5 + [1.02] * 5, 0.025), [])
        self.assertEqual(trend.change_points([1.0, 2.0, 3.0], 0.025), [])

    def test_a_step_in_noise_is_found_near_its_place(self) -> None:
        draw = random.Random(3)
        for _ in range(50):
            values = [1.0 + 0.1 * (i >= 9) + draw.gauss(0, 0.01) for i in range(20)]
            found = trend.change_points(values, 0.025)
            self.assertEqual(len(found), 1, values)
            self.assertTrue(8 <= found[0] <= 10, values)


class Changes(unittest.TestCase):
    def test_words_are_those_of_the_gate(self) -> None:
        for before, now, word in (
                (row(1.0), row(1.0), "same"), (row(1.0), row(1.04), "WORSE"),
                (row(1.04), row(1.0), "better"), (row(1.0, 0.05), row(1.0, 0.05), "cannot tell"),
                (row(1.0), row(1.2, verdict="falsified"), "WORSE"),
                (row(1.2, verdict="falsified"), row(1.0), "better"),
                (row(1.0), row(1.0, verdict="inconclusive"), "cannot tell"),
                (row(1.0), row(0, verdict="not_tested"), "cannot tell"),
                (None, row(1.0), "new"), (None, None, ""),
                (row(2.0, direction="above"), row(1.6, direction="above"), "WORSE")):
            self.assertEqual(change.change(before, now, 0.025)[0], word, (before, now))


class Folders(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)

    def make(self, name: str, effect: float, **run: Any) -> pathlib.Path:
        made_evidence.make(self.top / name, row(effect), **run)
        return self.top / name

    def compare(self, *arguments: object) -> tuple[int, str, str]:
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = compare.main([*map(str, arguments), "--no-png", "--out", str(self.top / "out")])
        return code, out.getvalue(), errors.getvalue()

    def test_runs_are_compared_and_their_histograms_added(self) -> None:
        code, out, _ = self.compare(self.make("a", 1.0), self.make("b", 1.04))
        self.assertEqual(code, 0)
        self.assertIn("H11 WORSE", out)
        html = (self.top / "out/compare.html").read_text()
        self.assertIn("all runs: 2000 calls", html)
        self.assertIn('data-label="change"><span class="worse">WORSE', html)
        self.assertNotIn("missing", html, "claims that neither run has")
        self.assertIn("](plots/trend_H11.png)", (self.top / "out/compare.md").read_text())

    def test_what_got_worse_comes_first_and_is_the_heading(self) -> None:
        for name, ratio in (("a", 1.0), ("b", 1.04)):
            folder = self.make(name, ratio)
            for own in ("H2", "X1"):  # one of a plugin, too
                other = made_evidence.result(own, effect=0.0, verdict="survived")
                made_evidence.make(self.top / "more", other)
                (self.top / "more" / own).rename(folder / own)
                results = json.loads((folder / "results.json").read_text())
                results["claims"].insert(0, other)
                (folder / "results.json").write_text(json.dumps(results))
        code, out, _ = self.compare(self.top / "a", self.top / "b")
        self.assertEqual(code, 0)
        self.assertEqual([line.split()[:2] for line in out.splitlines()[:3]],
                         [["H11", "WORSE"], ["H2", "same"], ["X1", "same"]])
        self.assertIn("<h1>1 claim worse: H11</h1>", (self.top / "out/compare.html").read_text())

    def test_a_program_can_read_the_answer_and_the_error(self) -> None:
        first, last = self.make("a", 1.0), self.make("b", 1.04)
        code, out, _ = self.compare(first, last, "--json")
        said = json.loads(out)
        self.assertEqual((code, said["command"], said["page"]),
                         (0, "compare", str(self.top / "out/compare.html")))
        self.assertEqual([(row["id"], row["change"]) for row in said["claims"]],
                         [("H11", "WORSE")])
        code, out, errors = self.compare(first, "--json")
        said = json.loads(out)
        self.assertEqual((code, said["exit_code"]), (2, 2))
        self.assertIn(said["error"], errors)

    def test_the_page_is_opened_where_that_is_asked_for(self) -> None:
        browser, seen = self.top / "browser", self.top / "seen"
        browser.write_text(f"#!/bin/sh\necho \"$1\" >'{seen}'\n")
        browser.chmod(0o755)
        runs = [self.make("a", 1.0), self.make("b", 1.0)]

        def opened(*words: object, browser: object = browser) -> "subprocess.CompletedProcess[str]":
            seen.unlink(missing_ok=True)
            return subprocess.run(
                [sys.executable, "-m", "reports", *map(str, words), "--no-png", "--out",
                 str(self.top / "a page")], cwd=made_evidence.ROOT, check=False, text=True,
                capture_output=True, env={**os.environ, "BROWSER": f"{browser} %s"})

        for words, page in ((("compare", *runs), "compare.html"), (runs[:1], "report.html")):
            self.assertEqual(opened(*words).returncode, 0)
            self.assertFalse(seen.exists())
            self.assertEqual(opened(*words, "--open").returncode, 0)
            self.assertEqual(seen.read_text().strip(), (self.top / "a page" / page).as_uri())

    def test_an_output_that_cannot_be_written_is_an_error(self) -> None:
        runs = [self.make("a", 1.0), self.make("b", 1.0)]
        for words in (("compare", *runs), ("merge", *runs, "--mixed"), runs[:1]):
            command = " ".join([sys.executable, "-m reports", *map(str, words), "--no-png --out",
                                str(self.top / "page")])
            for shell in (f"{command} >/dev/full", f"{command} | true; exit ${{PIPESTATUS[0]}}",
                          f"{command} >&-"):
                done = subprocess.run(["bash", "-c", shell], cwd=made_evidence.ROOT, check=False,
                                      text=True, capture_output=True)
                self.assertEqual(done.returncode, 2, (shell, done.stderr))
                self.assertIn("reports: ", done.stderr)

    def test_an_exception_does_not_look_as_if_something_got_worse(self) -> None:
        def fail() -> int:
            raise RuntimeError("an error of this program")
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(answer.exit_code(fail), 2)
            self.assertEqual(answer.exit_code(lambda: 1), 1)
        self.assertIn("an error of this program", errors.getvalue())

    def test_a_trend_marks_where_it_changed(self) -> None:
        folders = [self.make(f"run{at}", 1.0 + 0.1 * (at >= 3)) for at in range(6)]
        self.assertEqual(self.compare(*folders)[0], 0)
        self.assertIn("changed before run 4", (self.top / "out/compare.html").read_text())

    def test_what_cannot_be_compared_is_refused_unless_asked_for(self) -> None:
        first = self.make("a", 1.0)
        others = {"on Other": self.make("device", 1.0, device="Other"),
                  "is a full run": self.make("mode", 1.0, mode="full"),
                  "the injected fault x": self.make("under", 1.0, under="x")}
        made_evidence.make(self.top / "limit", row(1.0, threshold=1.2))
        others["the threshold 1.05"] = self.top / "limit"
        for why, other in others.items():
            code, _, errors = self.compare(first, other)
            self.assertEqual((code, errors.count("\n")), (2, 1), why)
            self.assertIn(why, errors)
            self.assertFalse((self.top / "out").exists())
        self.assertEqual(self.compare(first, others["on Other"], "--across")[0], 0)
        html = (self.top / "out/compare.html").read_text()
        self.assertIn("Compared because of --across", html)
        self.assertNotIn("all runs:", html, "histograms of two machines are not one")
        self.assertEqual(self.compare(first)[0], 2)

    def test_published_runs_of_one_machine_can_be_compared(self) -> None:
        folders = sorted(made_evidence.ROOT.glob(f"reports/published/*/{archive.NAME}"))
        self.assertEqual(change.difference(*map(evidence.read, folders[:2])), "")


if __name__ == "__main__":
    unittest.main()
