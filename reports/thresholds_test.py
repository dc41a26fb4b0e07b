"""Tests of the claims' TOML files: python3 -m unittest reports.thresholds_test."""

import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from reports import claims_index, thresholds

LADDER = '"launch_drop_one_in=1000,10000,100000,200000"'


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
        self.assertIn(f"HYP_LADDER(2, {LADDER})", thresholds.as_c(claims, sabotage))
        self.assertGreaterEqual(min(len(entry["falsified"]) for entry in sabotage.values()), 2)

    def test_attacks_that_are_tried_first_exist(self) -> None:
        claims, sabotage = thresholds.load()
        self.assertIn('HYP_FIRST(6, "packed_*", "packed_sequences_*")',
                      thresholds.as_c(claims, sabotage))
        for name, entry in sabotage.items():
            files = claims_index.attack_files(name, "")
            attacks = re.findall(r"^HYP_ATTACK\w*\(\w+,\s*(\w+)",
                                 "\n".join(file.read_text() for file in files), re.MULTILINE)
            for text in entry.get("first", []):
                self.assertTrue(fnmatch.filter(attacks, text.split("=")[1]), f"{name}: {text}")

    def test_a_claim_may_be_added_after_the_others(self) -> None:
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
                ("alone = true", "alone = 1", "alone is neither true nor false"),
                ("[H13]", "[H99]", "H99"), ("[H13]", "# ", "thresholds.toml"),
                ("falsified = [", "others = [", "falsified"),
                ("not_falsified = [", "sometimes = [", "not a verdict"),
                ('first = ["grouped_*=*groups*"', "first = [1", "not a line of printable text"),
                ('"grouped_*=*groups*"', '"grouped_*"', "not SABOTEURS=ATTACKS"),
                ('"grouped_*=*groups*"', '"group=*groups*"', "no saboteur that must falsify"),
                ("not_survived = [", "# ", "borderline"),
                ('"launch_drop"', "7", "printable"), ('"launch_drop"', '"a\\n"', "printable"),
                (LADDER, '"launch_drop\\u0007"', "printable"),
                ('title = "', "title = 7 # ", "title is not a line of printable text"),
                ('title = "', 'title = "\\u0007', "title is not a line of printable text"),
                ("falsified = [", "falsified = 7 # [", "a list of names"),
                ("falsified = [", "falsified = [[], ", "printable"),
                (LADDER, '"launch_drop_one_in=1000,100"', "from gross to fine"),
                (LADDER, '"launch_drop_one_in=100,100"', "from gross to fine"),
                (LADDER, '"launch_delay_us=2,4"', "from gross to fine"),
                (LADDER, '"launch_drop_one_in=100,many"', "no number"),
                (LADDER, '"launch_drop_one_in="', "no number"),
                (LADDER, '"launch_drop_one_in=0,1"', "above 0"),
                (LADDER, '"launch_drop_one_in=1,inf"', "above 0"),
                (LADDER, '"launch_drop_one_in=1,2,3,4,5,6,7,8,9"', "more than 8 steps"),
                (LADDER, "7", "list of faults"), (LADDER, '""', "list of faults"),
                (LADDER, '"a", "b", "c", ' + LADDER, "at most 4 ladders"),
                ("limits = [" + LADDER, 'limits = "launch_drop"\nothers = [' + LADDER,
                 "at most 4 ladders"),
                ("limits = [" + LADDER, "limit = [" + LADDER, "not a verdict")):
            with self.assertRaisesRegex(ValueError, message, msg=new):
                self.load_changed(old, new)

    def test_texts_become_c_strings(self) -> None:
        self.assertEqual(thresholds.c_string('é \U0001f600 "a\\b" ??/'),
                         '"é \U0001f600 \\"a\\\\b\\" ?\\?/"')

    def test_a_claim_that_is_no_table_is_refused(self) -> None:
        for file in ("thresholds.toml", "sabotage.toml"):
            with tempfile.TemporaryDirectory() as folder:
                for name in ("thresholds.toml", "sabotage.toml"):
                    shutil.copy(thresholds.HYPOTHESES / name, folder)
                text = pathlib.Path(folder, file).read_text().split("[H13]")[0]
                pathlib.Path(folder, file).write_text("H13 = 7\n" + text)
                with self.assertRaisesRegex(ValueError, "H13 is not a table"):
                    thresholds.load(pathlib.Path(folder))

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
