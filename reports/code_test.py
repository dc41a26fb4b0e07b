"""Tests of what a claim's code is: python3 -m unittest reports.code_test, from the top folder."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from reports import code, evidence, thresholds, written

FILES = {
    "runtime/core/status.c": "int a; /* one */\n",
    "runtime/pool/pool.c": 'char *b = "/* text */"; // two\n',
    "hypotheses/h08_pool.c": '#include "attack/pool_walk.h"\nint c;\n',
    "hypotheses/h01_modules.c": "int d;\n",
    "hypotheses/harness/attack/pool_walk.c": "int e;\n",
}


class Code(unittest.TestCase):
    def changed(self, claim: str, path: str, text: str) -> list[str]:
        return code.changed(claim, code.digests(FILES), code.digests({**FILES, path: text}))

    def test_what_a_claim_depends_on_counts(self) -> None:
        self.assertEqual(self.changed("H8", "runtime/pool/pool.c", "char *b;"), ["runtime/pool"])
        self.assertEqual(self.changed("H8", "runtime/pool/new.c", "int f;"), ["runtime/pool"])
        self.assertEqual(self.changed("H1", "runtime/pool/pool.c", "char *b;"), [])
        self.assertEqual(self.changed("H1", "runtime/core/status.c", "int b;"), ["runtime/core"])

    def test_an_attack_is_its_file_and_what_that_includes(self) -> None:
        walk = "hypotheses/harness/attack/pool_walk.c"
        self.assertEqual(self.changed("H8", walk, "int f;"), ["the attack H8"])
        self.assertEqual(self.changed("H1", walk, "int f;"), [])
        self.assertEqual(self.changed("H1", "hypotheses/h01_modules.c", ""), ["the attack H1"])

    def test_comments_and_white_space_do_not_count(self) -> None:
        pool = "runtime/pool/pool.c"
        self.assertEqual(self.changed("H8", pool, 'char *b =\n    "/* text */";\n'), [])
        self.assertEqual(self.changed("H8", pool, 'char *b = "/* other */";'), ["runtime/pool"])

    def test_tests_and_benchmarks_do_not_count(self) -> None:
        for path in ("runtime/pool/pool_test.c", "runtime/bench/pool_bench.c", "ci/x.c",
                     "kernels/kernel_scene.c",
                     "runtime/soft/machine/machine.c", "runtime/pool/README.md"):
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
    def test_a_run_that_was_interrupted_judges_nothing(self) -> None:
        runs = [evidence.read(code.ROOT / f"reports/published/2026-11-23-h200-{name}")
                for name in ("limits", "all-13")]
        self.assertEqual(runs[0].run["exit_code"], 2)
        self.assertEqual({id(run) for run, _ in written.newest(runs).values()}, {id(runs[1])})

    def test_a_run_of_limits_alone_judges_nothing(self) -> None:
        runs = [evidence.read(code.ROOT / f"reports/published/2026-11-23-h200-{name}")
                for name in ("limits-h4", "all-13")]
        self.assertEqual(runs[0].run["exit_code"], 0)
        self.assertGreater(runs[0].run["begin_s"], runs[1].run["begin_s"])
        self.assertEqual({id(run) for run, _ in written.newest(runs).values()}, {id(runs[1])})

    def test_a_verdict_of_older_code_is_in_brackets(self) -> None:
        with tempfile.TemporaryDirectory(dir=code.ROOT / "reports") as name:
            folder = pathlib.Path(name)
            run = evidence.read(code.ROOT / "reports/published/2026-11-22-h200-h4-h11")
            run.folder = folder
            now = code.digests(code.in_tree())
            self.assertRegex(written.verdict_block([run]), r"\(survived\).*not known")
            for parts, row in ((now, r"\| survived \|.*fd11886, 2026-11-22 \| nothing \|"),
                               ({**now, "runtime/core": "other"},
                                r"\| \(survived\) \|.*fd11886, 2026-11-22 \| runtime/core \|")):
                (folder / code.NAME).write_text(json.dumps({"parts": parts}))
                with mock.patch("reports.written.pick", return_value=[]):
                    self.assertRegex(written.verdict_block([run]), row)


if __name__ == "__main__":
    unittest.main()
