"""Fleets are merged whole or refused by name: python3 -m unittest reports.fleet.merge_test."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import tempfile
import unittest
from typing import Any

from reports import archive, hdr, pack
from reports.fleet import fleet_verdicts, made_fleet, merge, merging


class Fleets(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)
        self.out = self.top / "out"

    def make(self, name: str, **changed: Any) -> pathlib.Path:
        made_fleet.make(self.top / name, changed.pop("node", name), **changed)
        return self.top / name

    def merge(self, *words: object) -> tuple[int, str, str]:
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = merge.main([*map(str, words), "--no-png", "--out", str(self.out)])
        return code, out.getvalue(), errors.getvalue()

    def merged(self, *words: object, code: int = 0) -> dict[str, Any]:
        """The answer to --json, which merge.json has too."""
        got, out, errors = self.merge(*words, "--json")
        self.assertEqual(got, code, errors)
        said = json.loads(out)
        self.assertEqual(said["exit_code"], code)
        written = json.loads((self.out / "merge.json").read_text())
        self.assertEqual({**written, "command": "merge"}, said)
        return said

    def refused(self, *words: object) -> str:
        """The sentence about what is not merged; nothing is written."""
        code, out, errors = self.merge(*words)
        self.assertEqual((code, out, errors.count("\n")), (2, "", 1), errors)
        self.assertFalse(self.out.exists())
        return errors


class Verdicts(Fleets):
    def test_a_claim_has_the_verdicts_of_all_machines(self) -> None:
        fallen = {"H4": {"verdict": "falsified", "reason": "too <slow>"}}
        doubtful = {"H4": {"verdict": "inconclusive"}, "H11": {"verdict": "not_tested"}}
        folders = [self.make("a"), self.make("b", claims=fallen, exit_code=1),
                   self.make("c", claims=doubtful, exit_code=3), self.make("d")]
        said = self.merged(*folders, code=1)
        rows = {row["id"]: row for row in said["claims"]}
        self.assertEqual([rows["H4"][key] for key in ("verdict", "survived", "falsified",
                                                      "inconclusive", "not_tested")],
                         ["falsified", 2, 1, 1, 0])
        self.assertEqual((rows["H11"]["verdict"], rows["H11"]["survived"],
                          rows["H11"]["not_tested"]), ("survived", 3, 1))
        self.assertEqual((rows["H3"]["samples"], rows["H3"]["runs"], rows["H3"]["saboteurs"]),
                         (400, 4, 12))
        self.assertIn({"machine": f"b {made_fleet.uuid('b')}", "evidence": str(folders[1]),
                       "reason": "too <slow>"}, rows["H4"]["reasons"])
        html = (self.out / "merge.html").read_text()
        self.assertIn("too &lt;slow&gt;", html)
        self.assertNotIn("<slow>", html)

    def test_evidence_cannot_write_to_the_terminal(self) -> None:
        hostile = {"verdict": "falsified", "reason": "a\x1b[2J\rb", "title": "c\x07d"}
        code, out, _ = self.merge(self.make("a", claims={"H4": hostile}))
        self.assertEqual(code, 1)
        self.assertTrue(all(line.isprintable() for line in out.splitlines()), out)
        self.assertIn("a?[2J?b", out)

    def test_exit_codes_are_those_of_a_run(self) -> None:
        first = self.make("a")
        doubtful = self.make("b", claims={"H4": {"verdict": "inconclusive"}}, exit_code=3)
        self.assertEqual(self.merge(first)[0], 0)
        self.assertEqual(self.merge(first, doubtful)[0], 3)
        self.assertEqual(self.merge(first, doubtful, "--inconclusive=warn")[0], 0)
        code, out, _ = self.merge(first, self.make("c", exit_code=2))
        self.assertEqual(code, 2)
        self.assertIn(f"failed: {self.top / 'c'} ended with 2", out)

    def test_a_machine_once_falsified_stays_so_and_a_doubt_can_be_cleared(self) -> None:
        for first, then, verdict in (("falsified", "survived", "falsified"),
                                     ("inconclusive", "survived", "survived"),
                                     ("survived", "inconclusive", "inconclusive"),
                                     ("survived", "not_tested", "survived")):
            rows = [{"verdict": first}, {"verdict": then}]
            self.assertEqual(fleet_verdicts.of_machine(rows), verdict, (first, then))

    def test_days_are_told_apart_and_a_new_level_is_marked(self) -> None:
        folders = [self.make(f"a{day}", node="a", day=day,
                             claims={"H11": {"effect": 1.0 + 0.2 * (day > 3)}})
                   for day in range(7)]
        said = self.merged(*folders)
        days = [day for day in said["days"] if day["claim"] == "H11"]
        self.assertEqual([day["changed"] for day in days], [day == 4 for day in range(7)])
        self.assertEqual(len(said["machines"]), 1)
        newer = self.make("b", day=9, claims={"H11": {"title": "in newer words"}})
        rows = {row["id"]: row for row in self.merged(newer, *folders)["claims"]}
        self.assertEqual(rows["H11"]["title"], "in newer words")
        self.assertIn("changed: 2026-06-", (self.out / "merge.html").read_text())


class Sums(Fleets):
    def test_histograms_are_added_exactly(self) -> None:
        folders = [self.make(name) for name in "abc"]
        self.merged(*folders)
        logs = list((self.out / "histograms").glob("*_H4.hlog"))
        self.assertEqual(len(logs), 1)
        added: dict[int, int] = {}
        for folder in folders:
            _, one = hdr.read_log(folder / "H4/a_launch_costs_little.hlog")[0]
            for value, count in one.buckets:
                added[value] = added.get(value, 0) + count
        whole = dict(hdr.read_log(logs[0]))["a_launch_costs_little:launch_driver"]
        self.assertEqual(whole.buckets, sorted(added.items()))
        self.assertEqual(whole.total, 3 * made_fleet.CALLS)

    def test_the_same_files_count_once_wherever_they_are(self) -> None:
        first = self.make("a")
        shutil.copytree(first, self.top / "copy")
        (self.top / "copy/report").mkdir()
        (self.top / "copy/report/report.html").write_text("made later")
        (self.top / "copy/report/newest.html").symlink_to("report.html")
        (self.top / "copy/said.txt").write_text("no file of the run")
        (self.top / "packed").mkdir()
        (self.top / "packed" / archive.NAME).write_bytes(archive.packed(pack.files_of(first)))
        others = [self.top / "copy", self.top / "packed", self.top / "packed" / archive.NAME, first]
        said = self.merged(first, *others, self.make("b"))
        self.assertEqual(sum(len(machine["runs"]) for machine in said["machines"]), 2)
        self.assertEqual(said["duplicates"], [{"evidence": str(other), "first": str(first)}
                                              for other in others])
        self.assertEqual(said["claims"][0]["samples"], 200)

    def test_one_run_in_two_forms_is_a_change_and_named(self) -> None:
        first, other = self.make("a"), self.make("other", node="a",
                                                 claims={"H4": {"samples": 999}})
        self.assertIn(f"{other} says that it is the same run as {first}",
                      self.refused(first, other))

    def test_many_are_read_side_by_side(self) -> None:
        folders = [str(self.make(f"m{at:02}")) for at in range(2 * merging.CHUNK + 1)]
        alone, beside = merging.merge(folders, 1), merging.merge(folders, 2)
        self.assertEqual(alone, beside)
        self.assertEqual(len(alone.runs), len(folders))


class Refusals(Fleets):
    def test_mixed_runs_are_refused_unless_told(self) -> None:
        first = self.make("a")
        limit = {"H4": {"threshold": 3.0}}
        for name, changed in (("commit", {"commit": "d" * 40}), ("commit", {"dirty": True}),
                              ("mode", {"mode": "full"}), ("attacks", {"filter": "H4/*"}),
                              ("H4 by at_most 2 us", {"claims": limit})):
            other = self.make("b", **changed)
            self.assertIn(name, self.refused(first, other))
            self.assertEqual(self.merge(first, other, "--mixed")[0], 0)
            self.assertIn("Merged because of --mixed", (self.out / "merge.md").read_text())
            shutil.rmtree(self.out)

    def test_numbers_of_different_kinds_are_not_added(self) -> None:
        said = self.merged(self.make("a"), self.make("b", device="Another GPU"))
        self.assertEqual(len(list((self.out / "histograms").glob("*_H4.hlog"))), 2)
        self.assertTrue(all(row["machines"] == 1 for row in said["spreads"]))

    def test_what_is_missing_is_named(self) -> None:
        first, gone = self.make("a"), self.top / "task-17"
        self.assertIn(f"there is no {gone}", self.refused(first, gone))
        said = self.merged(first, gone, "--partial", code=3)
        self.assertEqual(said["missing"], [str(gone)])
        self.assertIn("task-17", (self.out / "merge.md").read_text())
        shutil.rmtree(self.out)
        self.assertIn("nothing could be merged", self.refused(gone, "--partial"))

    def broken(self) -> dict[str, str]:
        """Folders that must be refused, and what the sentence about each says."""
        says = {}

        def damage(name: str, why: str, **changed: Any) -> pathlib.Path:
            says[name] = why
            return self.make(name, **changed)

        (damage("cut", "was cut off") / "run.json").unlink()
        (damage("gone", "is missing") / "H4/a_launch_costs_little.hlog").unlink()
        (damage("edited", "has changed") / "results.json").write_text("{}")
        damage("schema", "schema 2", schema=2)
        damage("under", "injected fault", under="copy_flip_bit")
        damage("when", "began at 1e+300", begin_s=1e300)
        damage("node", "the node's name is", node="<script>")
        damage("uuid", "the device's UUID is", uuid="../x")
        damage("effect", "not a number", claims={"H4": {"effect": float("nan")}})
        damage("verdict", "must be one of", claims={"H4": {"verdict": "fine"}})
        (damage("link", "link or a special file") / "H4/out").symlink_to("/etc")
        os.mkfifo(damage("pipe", "link or a special file") / "pipe")
        (damage("name", "none of a run's files") / "a\x1b[2J").touch()
        deep = "[" * 100_000
        (damage("deep", "is no evidence") / "run.json").write_text(f'{{"a": {deep}')
        (self.top / "torn").mkdir()
        (self.top / "torn" / archive.NAME).write_bytes(b"\xfd7zXZ\0 and no more")
        says["torn"] = "not an evidence archive"
        (self.top / "empty").mkdir()
        says["empty"] = "was cut off"
        os.mkfifo(self.top / "fifo")
        says["fifo"] = "neither a folder nor an archive"
        return says

    def test_hostile_and_cut_folders_are_refused_by_name_and_the_rest_is_merged_if_told(
            self) -> None:
        says, first = self.broken(), self.make("a")
        for name, why in says.items():
            sentence = self.refused(first, self.top / name)
            self.assertIn(str(self.top / name), sentence)
            self.assertIn(why, sentence, name)
            self.assertTrue(sentence[:-1].isprintable(), sentence)
        said = self.merged(first, *(self.top / name for name in says), "--partial", code=3)
        self.assertEqual([row["evidence"] for row in said["refused"]],
                         [str(self.top / name) for name in says])
        self.assertEqual(len(said["machines"]), 1)

    def test_absurd_sizes_are_refused(self) -> None:
        folder = self.make("a")
        with open(folder / "large", "wb") as file:
            file.truncate(archive.BYTES_MAX + 1)
        self.assertIn("256 MiB", self.refused(folder))


if __name__ == "__main__":
    unittest.main()
