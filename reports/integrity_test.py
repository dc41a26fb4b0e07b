"""Damaged evidence is refused with the name of the file: python3 -m unittest reports.integrity_test
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from reports import evidence, made_evidence


class Damage(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def refused(self, name: str, text: "str | None", manifest: bool = False) -> str:
        """The message about a folder in which one file was replaced or deleted."""
        made_evidence.make(self.folder, manifest=manifest)
        path = self.folder / name
        path.unlink() if text is None else path.write_text(text)
        with self.assertRaises(ValueError, msg=name) as caught:
            evidence.read(self.folder)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)

    def test_the_files_themselves_are_sound(self) -> None:
        for manifest in (False, True):
            made_evidence.make(self.folder, manifest=manifest)
            self.assertEqual(evidence.read(self.folder).has_manifest, manifest)

    def test_every_listed_file_that_is_deleted_is_named(self) -> None:
        made_evidence.make(self.folder, manifest=True)
        listed = json.loads((self.folder / "manifest.json").read_text())["files"]
        self.assertGreater(len(listed), 10)
        for name in (*listed, "run.json", "manifest.json"):
            self.assertIn(str(self.folder / name), self.refused(name, None, manifest=True))

    def test_as_a_program_it_is_one_sentence(self) -> None:
        log = "H3/every_size.hlog"
        for name, text in ((log, None), (log, "Tag=a,0,1,2,oops\n"),
                           ("machine.json", '{"schema": 2}')):
            self.refused(name, text)
            done = subprocess.run([sys.executable, "-m", "reports", self.folder], text=True,
                                  cwd=made_evidence.ROOT, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(str(self.folder / name), done.stderr)

    def test_one_changed_byte_is_named(self) -> None:
        made_evidence.make(self.folder, manifest=True)
        path = self.folder / "H3/every_size.hlog"
        text = path.read_text()
        at = len(text) // 2
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1:]
        said = self.refused("manifest.json", '{"schema": 1, "files": {}}', manifest=True)
        self.assertIn("manifest.json has changed since the run", said)
        said = self.refused("H3/every_size.hlog", changed, manifest=True)
        self.assertIn("every_size.hlog has changed since the run", said)

    def test_what_is_missing_is_named_without_a_list(self) -> None:
        for name in ("results.json", "run.json", "machine.json", "H3/claim.json",
                     "H3/verdict.json", "H3/attacks/every_size.json", "H3/every_size.hlog"):
            self.assertIn(str(self.folder / name), self.refused(name, None))
        self.assertIn("every_size.launch_1.csv", self.refused("H3/every_size.launch_1.csv", None))

    def test_a_damaged_histogram_is_named_with_its_line(self) -> None:
        said = self.refused("H3/every_size.hlog", "Tag=ramp,0,1,2,HISTFAAAoops\n")
        self.assertIn("every_size.hlog, line 1", said)
        golden = (made_evidence.ROOT / "fixtures/hdr/golden.hlog").read_text()
        kept = "".join(line for line in golden.splitlines(True) if "ramp" not in line)
        self.assertIn("has no series ramp", self.refused("H3/every_size.hlog", kept))

    def test_a_damaged_table_is_named_with_its_line(self) -> None:
        for name, text in (
                ("seed0", "step,requested,used,held,largest_hole\n1,2,3,4\n"),
                ("seed0", "step,requested,used,held,largest_hole\n1,2,3,4,x\n"),
                ("launch_1", made_evidence.BLOCKS.replace("1.5", "nan")),
                ("seed0", "step,requested,used,held,largest_hole\n1,2,3,4,\0\n"),
                ("seed0", f"step,requested,used,held,largest_hole\n1,2,3,4,{'5' * 200000}\n"),
                ("streams", "lane,what,begin_ns,end_ns\na,b,c,d\n")):
            self.assertRegex(self.refused(f"H3/every_size.{name}.csv", text),
                             rf"{name}.csv line [23]: ")
        self.assertIn("cut off", self.refused("H3/every_size.launch_1.csv",
                                              made_evidence.BLOCKS.rsplit("\n", 2)[0] + "\n"))

    def test_mixed_schemas_name_the_file_of_the_other(self) -> None:
        for name in ("results.json", "run.json", "machine.json", "H3/claim.json",
                     "H3/attacks/every_size.json", "H3/sabotage/copy_flip/verdict.json"):
            made_evidence.make(self.folder)
            data = json.loads((self.folder / name).read_text())
            said = self.refused(name, json.dumps({**data, "schema": 2}))
            self.assertIn(f"{self.folder / name} has schema 2", said)

    def test_files_of_two_runs_are_told_apart(self) -> None:
        other = json.dumps({**made_evidence.result(), "samples": 8, "attacks": []})
        self.assertIn("from two runs", self.refused("H3/verdict.json", other))

    def test_what_is_no_evidence_is_refused(self) -> None:
        for text, words in (("{", "not JSON"), ("{}", "schema"), ('{"schema": 1}', "no device"),
                            ("[]", "not a JSON object"),
                            ('{"schema": 1, "claims": [3]}', "does not match its schema")):
            self.assertIn(words, self.refused("results.json", text))

    def test_a_list_of_no_files_of_the_run_is_refused(self) -> None:
        for files, words in (({"a": 7}, "neither size nor CRC"), ([], "lists no files"),
                             ({"/dev/zero": {}}, "outside of the folder"),
                             ({"H3/../../x": {}}, "outside of the folder")):
            said = self.refused("manifest.json", json.dumps({"schema": 1, "files": files}))
            self.assertIn(words, said)

    def test_numbers_of_another_type_are_named(self) -> None:
        made_evidence.make(self.folder)
        data = json.loads((self.folder / "results.json").read_text())
        data["claims"][0]["threshold"] = "0"
        self.assertIn("threshold", self.refused("results.json", json.dumps(data)))

    def test_what_only_the_report_misses_is_one_sentence(self) -> None:
        made_evidence.make(self.folder)
        data = json.loads((self.folder / "run.json").read_text())
        del data["duration_s"]
        (self.folder / "run.json").write_text(json.dumps(data))
        run = subprocess.run([sys.executable, "-m", "reports", str(self.folder), "--no-png"],
                             cwd=made_evidence.ROOT, capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr),
                         (2, "reports: the evidence lacks 'duration_s'\n"))


if __name__ == "__main__":
    unittest.main()
