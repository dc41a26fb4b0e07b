#!/usr/bin/env python3
"""What ci/mutate refuses, draws and keeps, and what of PTX it compares."""

import pathlib
import sys
import unittest

import trial
from mutation.cuda_bench import Kernels, changed_entries
from mutation.judge import drawn
from mutation.cuda_operators import cuda_mutants
from mutation.results import Log, Survivors, Verdict
from mutation.running import MutateError, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
PTX = """.version 6.4
.target sm_75
{0}
.visible .entry one(
)
{{ {1} }}
.visible .entry two(
)
{{ {2} }}
"""


class Kernel(unittest.TestCase):
    def test_entries_are_compared_one_by_one(self) -> None:
        before = PTX.format(".func f", "a", "b")
        for after, changed in (
                (before, []), (PTX.format(".func f", "a", "c"), ["two"]),
                (PTX.format(".func g", "c", "b"), ["one", "two"]),  # which may call it
                (PTX.format(".func f .global x;", "a", "b"), ["one", "two"])):
            self.assertEqual(changed_entries(before, after), changed)

    def test_a_header_is_in_all_kernels_that_include_it(self) -> None:
        found = Kernels(ROOT)
        self.assertIn("softmax_1_naive", found.with_file("kernels/row/row.cuh"))
        self.assertIn("kernels/row/row.cuh", found.files)
        self.assertIn("softmax", found.suites("softmax_1_naive")[0])
        own, others = found.suites("collective_3_columns")
        self.assertEqual((own.count("gather_columns"), others.count("gather_columns")), (0, 1))

    def test_the_draw_stays_where_mutants_are_added(self) -> None:
        file = "kernels/row/row.cuh"
        every = cuda_mutants(file, (ROOT / file).read_text(encoding="utf-8"))
        some, both = (drawn(few, 6, 1, True) for few in (every[:-5], every))
        same = [each for each in both if each not in every[-5:]]
        self.assertEqual(same, some[:len(same)])
        self.assertNotEqual(some, drawn(every[:-5], 6, 2, True))
        self.assertEqual(len({each.operator for each in both[:2]}), 2)


class TheCommand(trial.Trial):
    def test_what_cannot_be_is_refused(self) -> None:
        for words, said in ((["runtime/nothing.c"], "there is no file runtime/nothing.c"),
                            (["README.md"], "README.md has nothing to mutate"),
                            (["/"], "/ has nothing to mutate"),
                            (["--sample", "0"], "--sample must be 1 or more"),
                            (["--programs", "test-x"], "there is no test program test-x")):
            self.expect(2, said, sys.executable, "ci/mutate", "--list", *words, cwd=ROOT)

    def test_a_broken_file_of_survivors_is_named(self) -> None:
        for text in ("survivors = [\n", 'survivors = [{ file = "a", line = 1 }]\n'):
            path = self.write("survivors.toml", text)
            with self.assertRaisesRegex(MutateError, str(path)):
                Survivors(path)

    def test_a_limit_is_of_cpu_seconds(self) -> None:
        for words, kind in (("while :; do :; done", "timeout"), ("sleep 1.5", "passed"),
                            ("false", "killed")):
            self.assertEqual(run(ROOT, ["sh", "-c", words], {}, 1)[0].kind, kind)

    def test_a_survivor_is_tried_again_when_a_test_has_changed(self) -> None:
        dead, alive = (Verdict(kind, "", 0.0, "file", "tests") for kind in ("killed", "survived"))
        self.assertTrue(dead.holds("file", "other") and alive.holds("file", "tests"))
        self.assertFalse(dead.holds("other", "tests") or alive.holds("file", "other"))
        self.assertEqual(Log(pathlib.Path("/nonexistent")).verdicts, {})


if __name__ == "__main__":
    sys.exit(unittest.main())
