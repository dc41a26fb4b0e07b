"""Tests of the reports: python3 -m unittest reports.report_test, from the top folder."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from reports import archive, controls, evidence, made_evidence
from reports.made_evidence import ROOT


class Controls(unittest.TestCase):
    def test_comparisons_of_the_baseline_with_itself_are_counted(self) -> None:
        def compared(low: float | None, high: float | None, **more: object) -> dict[str, object]:
            return {"recorded_only": False, "ratio": True, "threshold": 1.05,
                    "direction": "at_most", "control": {"low": low, "high": high}, **more}

        claim = evidence.Claim({"unit": "ratio"}, {}, [])
        self.assertEqual(controls.sentence(claim), "")
        claim.effects = [compared(0.99, 1.01), compared(1.001, 1.01), compared(1.06, 1.07),
                         compared(None, None), compared(2, 3, recorded_only=True),
                         compared(-0.1, 0.2, ratio=False, threshold=2.0)]
        self.assertIn("In 4 comparisons", controls.sentence(claim))
        self.assertIn("2 of the intervals exclude", controls.sentence(claim))
        self.assertIn("1 lie beyond", controls.sentence(claim))
        claim.effects = [compared(0.99, 1.01, direction="above", threshold=1.5),
                         compared(1.6, 1.7, direction="above", threshold=1.5),
                         compared(0.9, 0.95, direction="above", threshold=0.97)]
        self.assertIn("2 lie beyond", controls.sentence(claim))

    def test_a_note_of_every_seed_stands_once(self) -> None:
        claim = evidence.Claim({"unit": "ratio"}, {}, [], notes=["one", "two", "one"])
        self.assertEqual(controls.notes(claim), ["one (2 times)", "two"])


class Reports(unittest.TestCase):
    def setUp(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def run_program(self, *words: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, "-m", "reports", *map(str, words)], cwd=ROOT,
                              capture_output=True, text=True, check=False)

    def test_a_report_is_whole_and_escaped(self) -> None:
        made_evidence.make(self.folder)
        done = self.run_program(self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        html = (self.folder / "report/report.html").read_text()
        for words in ("&lt;b&gt;bold", "byte 7 is &lt;wrong&gt;", "67 % (2 of 3)", "a &lt;note&gt;",
                      "1.5 (1.25 to ?)", "worst, seed 3", ">H3</b></a>", "every_size.new_kind.csv",
                      "copy_flip", "ci/falsify H3</pre>"):
            self.assertIn(words, html)
        for word in ("http://", "https://", "src=", "@import", "fetch("):
            self.assertNotIn(word, html, "the page must need no other file")
        self.assertEqual(html.count("<script>"), 1)
        self.assertNotRegex(html + (self.folder / "report/report.md").read_text(),
                            r"(?<![\w.,])1 (violation|attack|comparison|number|figure|call|walk"
                            r"|block|range|piece|lane|sample|processor)s\b")
        # On a phone a table is a list with a label on each line.
        for words in ('data-label="severity">67 %', 'data-label="expected">falsified',
                      'data-label="detected by">2 violations'):
            self.assertIn(words, html)
        self.assertEqual(html.count("<svg"), html.count('role="img" aria-label="'))
        text = (self.folder / "report/report.md").read_text()
        self.assertIn("a \\| \\<b\\>bold", text)
        self.assertIn("| launch\\_1 | 1 | undecided | 2 | 1.5 (1.25 to ?) |", text)
        self.assertIn("| worst, seed 3 | every\\_size | verdict | 1.062 |", text)
        pictures = [line.split("](")[-1].rstrip(")") for line in text.splitlines()
                    if "](plots/" in line]
        self.assertEqual(len(pictures), html.count('<svg viewBox="0 0 460'))
        for picture in pictures:
            self.assertTrue((self.folder / "report" / picture).exists(), picture)

    def test_each_seed_of_a_claim_is_reported(self) -> None:
        made_evidence.make(self.folder)
        own = self.folder / "H3"
        path, other = own / "verdict.json", own / "seed8"
        (other / "attacks").mkdir(parents=True)
        for file in [*own.glob("every_size.*"), own / "attacks/every_size.json"]:
            (other / file.relative_to(own)).write_bytes(file.read_bytes())
        verdict = json.loads(path.read_text())
        verdict["attacks"] = [{**verdict["attacks"][0], "seed": 7, "folder": ""},
                              {**verdict["attacks"][0], "seed": 8, "folder": "seed8"}]
        path.write_text(json.dumps(verdict))
        run = json.loads((self.folder / "run.json").read_text())
        (self.folder / "run.json").write_text(json.dumps({**run, "seed": 7, "seeds": 2}))
        done = self.run_program(self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (self.folder / "report/report.md").read_text()
        self.assertIn("seeds 7 to 8", text)
        self.assertIn("| worst, seed 3 | every\\_size | verdict | 1.062 |", text)
        self.assertIn("| worst, seed 3 | every\\_size, seed 8 | verdict | 1.062 |", text)
        html = (self.folder / "report/report.html").read_text()
        self.assertIn("every_size, seed 8: byte 7", html)

    def test_a_claim_that_fell_says_why_once_in_its_section(self) -> None:
        for reason, times in (("every_size: byte 7 is <wrong>", 2), ("another", 1)):
            made_evidence.make(self.folder, made_evidence.result(reason=reason, effect=1.0))
            self.assertEqual(self.run_program(self.folder, "--no-png").returncode, 0)
            html = (self.folder / "report/report.html").read_text()
            # The table of verdicts has it, and the counterexamples or a paragraph of its own.
            warning = "every_size: byte 7 is &lt;wrong&gt;"
            self.assertEqual(html.count(f"<p>{warning}</p>"), 0)
            self.assertEqual(html.count("<p>another</p>"), times % 2)
            self.assertIn(f"<li>{warning}</li>", html)
            self.assertIn("1 violation<", html)

    def test_several_runs_share_a_page(self) -> None:
        for name in ("one", "two"):
            made_evidence.make(self.folder / name, device=f"Device {name}")
        done = self.run_program(self.folder / "one", self.folder / "two", "--no-png", "--out",
                                self.folder / "both")
        self.assertEqual(done.returncode, 0, done.stderr)
        html = (self.folder / "both/report.html").read_text()
        self.assertIn("Device one", html)
        self.assertIn('id="run2-H3"', html)
        self.assertFalse((self.folder / "both/plots").exists())

    def test_no_folder_is_one_sentence(self) -> None:
        done = self.run_program(self.folder / "absent")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))

    def test_a_claim_without_attacks_says_so(self) -> None:
        row = made_evidence.result("H5", verdict="not_tested", effect=None, severity=None,
                                   samples=0)
        made_evidence.make(self.folder, row)
        (self.folder / "H5/verdict.json").write_text("{}")
        done = self.run_program(self.folder, "--no-png")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no attack on this claim", (self.folder / "report/report.html").read_text())

    def test_evidence_of_the_first_days_still_renders(self) -> None:
        """It has no manifest, no digests of its code and no seeds."""
        old = ROOT / "reports/published/2026-11-22-h200-h8-h9"
        done = self.run_program(old, "--no-png", "--out", str(self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("report.html", "report.md"):
            text = (self.folder / name).read_text()
            self.assertIn("1 of 2 claims falsified: H9", text)
            self.assertIn("eb0a929a", text)

    def test_the_page_of_published_evidence_is_whole(self) -> None:
        for folder in sorted(ROOT.glob(f"reports/published/*/{archive.NAME}")):
            for claim in evidence.read(folder).claims:
                if claim.attacks:
                    self.assertTrue(claim.words["confounders"], claim.id)
                    self.assertTrue(claim.words["control"], claim.id)


if __name__ == "__main__":
    unittest.main()
