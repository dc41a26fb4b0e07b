"""Tests of the reports: python3 -m unittest reports.report_test, from the top folder."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from reports import evidence, hdr, markdown, page, thresholds

ROOT = pathlib.Path(__file__).resolve().parent.parent


def make_evidence(folder: pathlib.Path, reason: str = "a | <b>bold</b> reason") -> None:
    claim = {"id": "H3", "title": "Transfers", "verdict": "falsified", "reason": reason,
             "code": None, "effect": 2.0, "unit": "violations", "low": None, "high": None,
             "threshold": 0.0, "direction": "at_most", "samples": 7,
             "severity": {"caught": 2, "of": 3}, "duration_s": 0.5}
    attack = {"name": "every_size", "ending": "failed", "detail": None, "samples": 7,
              "violations": 2, "duration_s": 0.5}
    texts = {
        "results.json": {"schema": 1, "device": {"kind": "soft", "name": "A <device>"},
                         "mode": "quick", "commit": "", "dirty": False, "claims": [claim]},
        "machine.json": {"device": {"kind": "soft", "name": "A <device>", "compute_capability": 90,
                                    "memory_bytes": 1 << 33},
                         "driver": {"version": 13000},
                         "host": {"processor": "p", "processors": 2, "system": "s", "kernel": "k"},
                         "dirty": False, "compiler": "gcc"},
        "run.json": {"command": "tollens run", "seed": 1, "duration_s": 1.0, "exit_code": 1},
        "H3/verdict.json": {**claim, "attacks": [attack]},
        "H3/claim.json": {"source": "spec", "claim": "words"},
        "H3/attacks/every_size.json": {
            "counterexamples": ["byte 7 is <wrong>"], "notes": ["a <note>"],
            "effects": [{"name": "launch_1", "recorded_only": False, "code": "undecided",
                         "decision": "undecided", "blocks": 400,
                         "effect": {"median": 1.5, "low": 1.25, "high": None},
                         "control": {"median": 1, "low": 0.99, "high": 1.01},
                         "baseline_ns": 1000, "subject_ns": None}],
            "measures": [{"name": "worst, seed 3", "value": 1.0625, "recorded_only": False},
                         {"name": "no number", "value": None, "recorded_only": True}]},
    }
    for name, data in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data))
    golden = (ROOT / "fixtures/hdr/golden.hlog").read_text()
    (folder / "H3/every_size.hlog").write_text(golden)
    (folder / "H3/every_size.seed0.csv").write_text(
        "step,requested,used,held,largest_hole\n10,1000,1024,2048,9\n20,4000,4096,4096,9\n")
    (folder / "H3/every_size.blocks.csv").write_text("block,order\n1,BSSB\n")


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


class Reports(unittest.TestCase):
    def setUp(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def run_program(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, "-m", "reports", str(self.folder)], cwd=ROOT,
                              capture_output=True, text=True, check=False)

    def test_a_report_is_whole_and_escaped(self) -> None:
        make_evidence(self.folder)
        done = self.run_program()
        self.assertEqual(done.returncode, 0, done.stderr)
        html = (self.folder / "report/report.html").read_text()
        self.assertIn("&lt;b&gt;bold", html)
        self.assertIn("byte 7 is &lt;wrong&gt;", html)
        self.assertIn("67 % (2 of 3)", html)
        self.assertIn("a &lt;note&gt;", html)
        self.assertIn("1.5 (1.25 to ?)", html)
        self.assertEqual(html.count("data:image/png;base64,"), 4)
        self.assertIn("worst, seed 3", html)
        for word in ("http://", "https://", "<script", "src=\"plots"):
            self.assertNotIn(word, html, "the page must need no other file")
        text = (self.folder / "report/report.md").read_text()
        self.assertIn("a \\| \\<b\\>bold", text)
        self.assertIn("| launch\\_1 | 1 | undecided | 400 | 1.5 (1.25 to ?) |", text)
        self.assertIn("| worst, seed 3 | every\\_size |  | 1.062 |", text)
        self.assertIn("](plots/H3_every_size_seed0.png)", text)
        for line in text.splitlines():
            if "](plots/" in line:
                picture = line.split("](")[1].rstrip(")")
                self.assertTrue((self.folder / "report" / picture).exists(), line)

    def test_bad_evidence_is_one_sentence(self) -> None:
        def spoil(name: str, text: "str | None") -> str:
            make_evidence(self.folder)
            path = self.folder / name
            path.unlink() if text is None else path.write_text(text)
            done = self.run_program()
            self.assertEqual(done.returncode, 2, name)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr

        self.assertIn("results.json", spoil("results.json", None))
        self.assertIn("results.json", spoil("results.json", "{"))
        self.assertIn("schema", spoil("results.json", "{}"))
        self.assertIn("claims", spoil("results.json", '{"schema": 1}'))
        self.assertIn("no JSON object", spoil("machine.json", "[]"))
        self.assertIn("verdict.json", spoil("H3/verdict.json", None))
        self.assertIn("line 1", spoil("H3/every_size.hlog", "Tag=a,0,1,2,oops\n"))
        self.assertIn("line 2", spoil("H3/every_size.seed0.csv", "step,requested,used,held,"
                                      "largest_hole\n1,2,3,4\n"))

    def test_a_walk_has_its_ratios(self) -> None:
        make_evidence(self.folder)
        [walk] = evidence.read(self.folder).claims[0].walks
        self.assertEqual((walk.name, walk.ratios(0)), ("seed0", [2.048, 1.024]))
        self.assertNotEqual(walk.ratios(0.5)[0], walk.ratios(0.5)[0])  # NaN: nearly nothing live

    def test_no_folder_is_one_sentence(self) -> None:
        self.folder = self.folder / "absent"
        done = self.run_program()
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))

    def test_every_page_shows_every_claim(self) -> None:
        make_evidence(self.folder)
        found = evidence.read(self.folder)
        self.assertIn("| H3 |", markdown.render(found))
        found.claims[0].series.clear()
        found.claims[0].walks.clear()
        self.assertIn(">H3</a>", page.render(found, self.folder))


class Thresholds(unittest.TestCase):
    def load_changed(self, old: str, new: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("thresholds.toml", "sabotage.toml"):
                text = (thresholds.HYPOTHESES / name).read_text()
                pathlib.Path(folder, name).write_text(text.replace(old, new, 1))
            thresholds.load(pathlib.Path(folder))

    def test_the_projects_own_are_sound(self) -> None:
        claims, sabotage = thresholds.load()
        self.assertEqual(len(claims), 13)
        self.assertGreaterEqual(min(len(entry["falsified"]) for entry in sabotage.values()), 2)

    def test_nonsense_is_refused(self) -> None:
        for old, new, message in (
                ("threshold = 2.0", "threshold = -2.0", "not negative"),
                ("threshold = 2.0", "threshold = nan", "finite"),
                ("threshold = 2.0", 'threshold = "two"', "no number"),
                ("threshold = 2.0", "", "no threshold"),
                ("threshold = 2.0", "threshold = ", "thresholds.toml"),
                ("tolerance = 0.1", "tolerance = -1", "tolerance must be finite and not negative"),
                ("tolerance = 0.1", "tolerance = nan", "tolerance must be finite"),
                ("tolerance = 0.1", "", "no tolerance"),
                ('direction = "above"', 'direction = "up"', "direction"),
                ("[H13]", "[H14]", "H14"),
                ("falsified = [", "others = [", "falsified"),
                ("not_falsified = [", "sometimes = [", "no verdict to force"),
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
