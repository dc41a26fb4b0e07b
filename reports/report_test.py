"""Tests of the reports: python3 -m unittest reports.report_test, from the top folder."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from reports import archive, controls, evidence, hdr, made_evidence, thresholds
from reports.made_evidence import ROOT


class Histograms(unittest.TestCase):
    def test_another_implementations_log_is_read(self) -> None:
        series = dict(hdr.read_log(ROOT / "fixtures/hdr/golden.hlog"))
        self.assertEqual([h.total for h in series.values()], [1, 1000, 40])
        self.assertEqual(series["one"].percentile(50), 42)
        self.assertTrue(499000 <= series["ramp"].percentile(50) <= 500000)
        self.assertGreaterEqual(series["wide"].maximum, 2**39)
        for histogram in series.values():
            values = [value for value, _ in histogram.buckets]
            self.assertEqual(values, sorted(set(values)))

    def test_damage_is_named(self) -> None:
        for text in ("", "HISTFAAA", "HISTFAAAACN4nJNpmSzM", "not base64!", "AAAA" * 30):
            with self.assertRaises(ValueError, msg=text):
                hdr.decode(text)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "bad.hlog")
            path.write_text("#comment\nTag=a,0,1,2,oops\n")
            with self.assertRaisesRegex(ValueError, "line 2"):
                hdr.read_log(path)


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
        self.assertIn("in 4 of the comparisons: 2 of the intervals exclude",
                      controls.sentence(claim))
        self.assertIn("1 lie beyond", controls.sentence(claim))
        claim.effects = [compared(1.2, 1.4, direction="above", threshold=1.5)]
        self.assertIn("1 lie beyond", controls.sentence(claim))


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
        for word in ("http://", "https://", "<script", "src=", "url("):
            self.assertNotIn(word, html, "the page must need no other file")
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
        self.assertIn("| worst, seed 3 | every\\_size seed 8 | verdict | 1.062 |", text)
        self.assertIn("every_size seed 8: byte 7", (self.folder / "report/report.html").read_text())

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

    def test_the_page_of_published_evidence_is_whole(self) -> None:
        for folder in sorted(ROOT.glob(f"reports/published/*/{archive.NAME}")):
            for claim in evidence.read(folder).claims:
                if claim.attacks:
                    self.assertTrue(claim.words["confounders"], claim.id)
                    self.assertTrue(claim.words["control"], claim.id)


class Thresholds(unittest.TestCase):
    def load_changed(self, old: str, new: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("thresholds.toml", "sabotage.toml"):
                text = (thresholds.HYPOTHESES / name).read_text()
                pathlib.Path(folder, name).write_text(text.replace(old, new, 1))
            thresholds.load(pathlib.Path(folder))

    def test_the_projects_own_are_sound(self) -> None:
        claims, sabotage = thresholds.load()
        self.assertGreaterEqual(len(claims), 13)
        self.assertGreaterEqual(min(len(entry["falsified"]) for entry in sabotage.values()), 2)

    def test_a_claim_may_be_added_behind_the_others(self) -> None:
        own = "[H13]" + (thresholds.HYPOTHESES / "thresholds.toml").read_text().split("[H13]")[1]
        number = len(thresholds.load()[0]) + 1
        for name, words in ((f"H{number}", ""), (f"H{number + 1}", "no gaps"), ("X1", "no gaps")):
            with tempfile.TemporaryDirectory() as folder:
                for file in ("thresholds.toml", "sabotage.toml"):
                    text = (thresholds.HYPOTHESES / file).read_text()
                    more = own.split("[H14]")[0].replace("[H13]", f"[{name}]")
                    pathlib.Path(folder, file).write_text(text + (
                        more if file[0] == "t" else f'\n[{name}]\nfalsified = ["launch_drop"]\n'))
                if words:
                    with self.assertRaisesRegex(ValueError, words):
                        thresholds.load(pathlib.Path(folder))
                else:
                    self.assertIn(f'HYP_SABOTEUR({number}, "launch_drop", HYP_MUST_FALSIFY)',
                                  thresholds.as_c(*thresholds.load(pathlib.Path(folder))))

    def test_nonsense_is_refused(self) -> None:
        for old, new, message in (
                ("threshold = 2.0", "threshold = -2.0", "not negative"),
                ("threshold = 2.0", "threshold = nan", "finite"),
                ("threshold = 2.0", 'threshold = "two"', "not a number"),
                ("threshold = 2.0", "", "no threshold"),
                ("threshold = 2.0", "threshold = ", "thresholds.toml"),
                ("tolerance = 0.1", "tolerance = -1", "tolerance must be finite and not negative"),
                ("tolerance = 0.1", "tolerance = nan", "tolerance must be finite"),
                ("tolerance = 0.1", "", "no tolerance"),
                ('direction = "above"', 'direction = "up"', "direction"),
                ("[H13]", "[H99]", "H99"), ("[H13]", "# ", "thresholds.toml"),
                ("falsified = [", "others = [", "falsified"),
                ("not_falsified = [", "sometimes = [", "not a verdict"),
                ("not_survived = [", "# ", "borderline"),
                ('"launch_drop"', "7", "names")):
            with self.assertRaisesRegex(ValueError, message, msg=new):
                self.load_changed(old, new)

    def test_the_build_stops_with_one_sentence(self) -> None:
        program = thresholds.HYPOTHESES.parent / "reports/thresholds.py"
        for new in ("threshold = -2.0", "threshold = nan", ""):
            with tempfile.TemporaryDirectory() as folder:
                for name in ("thresholds.toml", "sabotage.toml"):
                    text = (thresholds.HYPOTHESES / name).read_text()
                    pathlib.Path(folder, name).write_text(text.replace("threshold = 2.0", new, 1))
                table = pathlib.Path(folder, "claims.def")
                for words in ([], ["--c", table]):
                    ended = subprocess.run(
                        [sys.executable, program, *words, "--folder", folder],
                        capture_output=True, text=True, check=False)
                    self.assertEqual(ended.returncode, 2, new)
                    self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
                    self.assertIn("[H4]", ended.stderr)
                    self.assertFalse(table.exists())


if __name__ == "__main__":
    unittest.main()
