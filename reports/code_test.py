"""Tests of what a claim's code is: python3 -m unittest reports.code_test, from the top folder."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from reports import code, evidence, made_evidence, results_page, thresholds, words

FILES = {
    "runtime/driver/core/status.c": "int a; /* one */\n",
    "runtime/driver/pool/pool.c": 'char *b = "/* text */"; // two\n',
    "hypotheses/h08_pool.c": '#include "attack/pool_walk.h"\nint c;\n',
    "hypotheses/h01_modules.c": "int d;\n",
    "hypotheses/harness/attack/pool_walk.c": "int e;\n",
}


class Code(unittest.TestCase):
    def changed(self, claim: str, path: str, text: str) -> list[str]:
        return code.changed(claim, code.digests(FILES), code.digests({**FILES, path: text}))

    def test_what_a_claim_depends_on_counts(self) -> None:
        pool, core = "runtime/driver/pool", "runtime/driver/core"
        self.assertEqual(self.changed("H8", f"{pool}/pool.c", "char *b;"), [pool])
        self.assertEqual(self.changed("H8", f"{pool}/new.c", "int f;"), [pool])
        self.assertEqual(self.changed("H1", f"{pool}/pool.c", "char *b;"), [])
        self.assertEqual(self.changed("H1", f"{core}/status.c", "int b;"), [core])

    def test_an_attack_is_its_file_and_what_that_includes(self) -> None:
        walk = "hypotheses/harness/attack/pool_walk.c"
        self.assertEqual(self.changed("H8", walk, "int f;"), ["the attack H8"])
        self.assertEqual(self.changed("H1", walk, "int f;"), [])
        self.assertEqual(self.changed("H1", "hypotheses/h01_modules.c", ""), ["the attack H1"])

    def test_a_claim_may_be_a_folder(self) -> None:
        files = {"hypotheses/h05/gemm.c": "int a;", "hypotheses/h05/scene.h": "int b;",
                 "hypotheses/h06/gemm.c": "int c;"}
        self.assertEqual(code.attack_files("H5", files), list(files)[:2])

    def test_comments_and_white_space_do_not_count(self) -> None:
        pool = "runtime/driver/pool/pool.c"
        self.assertEqual(self.changed("H8", pool, 'char *b =\n    "/* text */";\n'), [])
        self.assertEqual(self.changed("H8", pool, 'char *b = "/* other */";'),
                         ["runtime/driver/pool"])

    def test_tests_and_benchmarks_do_not_count(self) -> None:
        for path in ("runtime/driver/pool/pool_test.c", "runtime/driver/bench/pool_bench.c",
                     "ci/x.c",
                     "kernels/kernel_scene.c",
                     "runtime/soft/machine/machine.c", "runtime/driver/pool/README.md"):
            self.assertFalse(code.counts(path), path)
        self.assertTrue(code.counts("kernels/gemm/gemm_1_naive.cu"))

    def test_each_claim_and_part_is_there(self) -> None:
        self.assertEqual(sorted(code.PARTS), sorted(thresholds.load()[0]))
        for part, found in code.digests(code.in_tree()).items():
            self.assertTrue(found, f"{part} has no files")

    def test_damage_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertEqual(code.read(folder), {})
            for text in ("", "[]", '{"parts": 1}', "{}"):
                (folder / code.NAME).write_text(text)
                with self.assertRaisesRegex(ValueError, code.NAME):
                    code.read(folder)
            done = subprocess.run([sys.executable, "-m", "reports.code", "0" * 40, name],
                                  cwd=code.ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, "^code: commit 0+ is not in this repository")


class Table(unittest.TestCase):
    """Which of several runs of H3 the page of results takes the verdict from."""

    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.top = pathlib.Path(made.name)

    def run_of(self, name: str, begin_s: float, exit_code: int = 0,
               **changed: Any) -> evidence.Evidence:
        row = made_evidence.result(verdict="survived", detection_limits=None, **changed)
        made_evidence.make(self.top / name, row, begin_s=begin_s, commit="fd11886e")
        run = evidence.read(self.top / name)
        run.run["exit_code"] = exit_code
        return run

    def newest(self, *runs: evidence.Evidence) -> str:
        ordered = sorted(runs, key=lambda run: -float(run.run["begin_s"]))
        return results_page.newest(ordered)["H3"][0].folder.name

    def test_the_newest_run_judges(self) -> None:
        self.assertEqual(self.newest(self.run_of("old", 1), self.run_of("new", 2)), "new")

    def test_a_run_that_was_interrupted_judges_nothing(self) -> None:
        self.assertEqual(self.newest(self.run_of("old", 1), self.run_of("new", 2, 2)), "old")

    def test_a_run_of_limits_alone_judges_nothing(self) -> None:
        limits = self.run_of("limits", 2, severity=None)
        limits.claims[0].result["detection_limits"] = [{"fault": "late"}]
        self.assertEqual(self.newest(self.run_of("old", 1), limits), "old")

    def test_saboteurs_of_an_older_run_are_named_with_it(self) -> None:
        runs = [self.run_of("new", 2, severity=None), self.run_of("old", 1)]
        day = words.day(runs[1])
        for own, said in ((runs[1], "2 of 3"), (runs[0], f"2 of 3 (fd11886, {day})")):
            self.assertEqual(results_page.caught("H3", own.claims[0], runs), said)
        self.assertEqual(results_page.caught("H3", runs[0].claims[0], runs[:1]), "not run")

    def test_a_verdict_of_older_code_is_in_brackets(self) -> None:
        run = self.run_of("run", 1.7e9)
        now = code.digests(code.in_tree())
        self.assertRegex(results_page.verdict_block([run]), r"\(survived\).*not known")
        core, moved = code.PARTS["H3"][0], {**now}
        del moved[core]
        for parts, row in ((now, r"\| survived \|.*fd11886, \S+ \| nothing \|"),
                           ({**now, core: "other"},
                            rf"\| \(survived\) \|.*fd11886, \S+ \| {core} \|"),
                           (moved, rf"\| \(survived\) \|.*\| {core} \(moved or changed\) \|")):
            (run.folder / code.NAME).write_text(json.dumps({"parts": parts}))
            self.assertRegex(results_page.verdict_block([run]), row)


if __name__ == "__main__":
    unittest.main()
