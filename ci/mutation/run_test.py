#!/usr/bin/env python3
"""On a small program with Criterion's tests: the mutants which a test notices are called killed and
the others survive, arguments are kept, and an interrupted run is undone."""

import contextlib
import dataclasses
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from mutation.arguments import check
from mutation.workshop import MutateError, Sanitizer, Tree, Workshop
from mutation.results import Survivors
from mutation.run import Draw, Run, go

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = """\
#include "sum.h"

/* Of the numbers below n; -1 for a negative one. */
int sum_below(int n) {
    int sum = 0;
    if (n < 0) return -1;
    for (long i = 0; i < n; i++) {
        sum += i;
    }
    return sum;
}

int untested(int n) {
    return n + 2;
}

int unwatched(int n) {
    return n + 3;
}

int looks_at(const volatile int *numbers, int count) {
    for (int i = 0; i < count; i++) (void)numbers[i];
    return count;
}
"""
TESTS = """\
#include "sum.h"
#include <criterion/criterion.h>
#include <stdlib.h>

Test(sum, of_numbers_below_five) {
    cr_assert_eq(sum_below(5), 10);
    cr_assert_eq(sum_below(-2), -1);
}

Test(sum, runs) {
    unwatched(1);
}

Test(sum, looks) {
    int *numbers = calloc(4, sizeof *numbers);
    cr_assert_eq(looks_at(numbers, 4), 4);
    free(numbers);
}
"""
HEADER = """\
int sum_below(int n);
int untested(int n);
int unwatched(int n);
int looks_at(const volatile int *numbers, int count);
"""
NINJA = """\
rule cc
  command = gcc -O1 $flags -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule exe
  command = gcc $flags $in -o $out $libs
"""
VARIANT = """\
build {0}/sum.o: cc sum.c
  flags = {1}
build {0}/sum_test.o: cc sum_test.c
  flags = {1} {2}
build {0}/git2_stub.o: cc {4}
  flags = {1}
build {0}/test-sum: exe {0}/sum.o {0}/sum_test.o {0}/git2_stub.o
  flags = {1}
  libs = {3}
"""


def criterion() -> tuple[str, str]:
    """Flags of the compiler and of the linker, as configure.py found them."""
    config = ROOT / "build/config.ninja"
    if not config.exists():
        raise unittest.SkipTest("there is no build; run ./configure.py")
    lines = dict(line.split(" = ", 1) for line in config.read_text().split("\n") if " = " in line)
    return lines.get("criterion_cflags", ""), lines.get("criterion_libs", "")


class ASmallTree(unittest.TestCase):
    def setUp(self) -> None:
        cflags, libs = criterion()
        stub = ROOT / "hypotheses/harness/run/git2_stub.c"  # Debian's Criterion asks for libgit2
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name, text in (("sum.c", PROGRAM), ("sum.h", HEADER), ("sum_test.c", TESTS)):
            (self.root / name).write_text(text)
        (self.root / "build.ninja").write_text(
            NINJA + VARIANT.format("build/mutate", "", cflags, libs, stub)
            + VARIANT.format("build/asan", "-fsanitize=address", cflags, libs, stub))
        self.tree = Tree(self.root, ["sum.c"], ["test-sum"], patience_s=5.0)
        self.asan = Sanitizer("ASan", "build/asan", ["test-sum"], {
            "ASAN_OPTIONS": "log_path={temporary}/found"})
        self.out = self.root / "out"

    def run_all(self, tree: Tree | None = None, jobs: int = 1,
                sample: int | None = None, time_s: float = 0) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = go(Run(tree or self.tree, self.out, jobs=jobs), ["sum.c"],
                      Draw(sample, 1, "", 0, time_s))
        return code, said.getvalue()

    def verdict(self, said: str, line: int, operator: str) -> str:
        found = [text.split()[1] for text in said.split("\n")
                 if f" sum.c:{line} {operator} " in text]
        self.assertEqual(len(found), 1, f"{line} {operator}: {said}")
        return found[0]

    def test_what_a_test_notices_is_killed_and_the_rest_survives(self) -> None:
        code, said = self.run_all()
        self.assertEqual(code, 1)
        for line, operator, verdict in (
                (5, "constant", "killed"), (6, "negated", "killed"), (8, "arithmetic", "killed"),
                (6, "deleted", "killed"), (7, "arithmetic", "timeout"),
                (6, "relational", "survived"),  # of nothing the sum is 0, or -1: nobody asks
                (14, "arithmetic", "survived"), (18, "arithmetic", "survived")):
            self.assertEqual(self.verdict(said, line, operator), verdict, f"{line} {operator}")
        self.assertIn("no test executes the line", said)
        self.assertEqual((self.root / "sum.c").read_text(), PROGRAM)
        survivors = Survivors(self.out)
        lines = {entry["line"] for entry in survivors.entries.values()}
        self.assertEqual(lines, {6, 7, 14, 18, 22})

        # Argued entries are kept, with their line, and no longer counted against the tests.
        for entry in survivors.entries.values():
            entry["equivalent"] = 'said "so"'
        survivors.write()
        (self.root / "sum.c").write_text("\n" + PROGRAM)
        code, said = self.run_all()
        self.assertEqual(code, 0, said)
        kept = Survivors(self.out).entries.values()
        self.assertEqual({entry["line"] for entry in kept}, {7, 8, 15, 19, 23})
        self.assertEqual({entry["equivalent"] for entry in kept}, {'said "so"'})

        # A test that kills one of them shows that its argument is wrong.
        (self.root / "sum_test.c").write_text(TESTS.replace("(-2), -1", "(0), 0"))
        code, said = self.run_all()
        self.assertEqual(code, 1, said)
        self.assertIn("argued to be equivalent, and a test noticed it", said)

        # And a line that is gone takes its argument with it.
        (self.root / "sum.c").write_text(PROGRAM.replace("n + 3", "n * 3"))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(check(Run(self.tree, self.out)), 1)
        self.assertIn("sum.c:19: what is argued to be equivalent is not there any more",
                      out.getvalue())

    def test_a_sanitizer_is_asked_about_what_survives(self) -> None:
        _, said = self.run_all()
        self.assertEqual(self.verdict(said, 22, "relational"), "survived")
        # A survivor that was judged without the sanitizer is judged again with it.
        _, said = self.run_all(dataclasses.replace(self.tree, sanitizers=(self.asan,)))
        self.assertEqual(self.verdict(said, 22, "relational"), "killed", said)
        self.assertIn("ASan: sum/looks", said)
        self.assertEqual(self.verdict(said, 18, "arithmetic"), "survived")
        # What it reports of the original too is no word on a mutant: here a leak.
        tests = (self.root / "sum_test.c").read_text()
        (self.root / "sum_test.c").write_text(tests.replace("free(numbers);", "numbers = NULL;"))
        _, said = self.run_all(dataclasses.replace(self.tree, sanitizers=(self.asan,)))
        self.assertEqual(self.verdict(said, 18, "arithmetic"), "survived")

    def test_several_at_once_give_the_same(self) -> None:
        _, alone = self.run_all(sample=9)
        shutil.rmtree(self.root / "build")
        shutil.rmtree(self.out)
        _, beside = self.run_all(jobs=3, sample=9)
        verdicts = [sorted(line.split("  ")[0] for line in said.split("\n") if " sum.c:" in line)
                    for said in (alone, beside)]
        self.assertEqual(*verdicts)
        self.assertEqual((self.root / "sum.c").read_text(), PROGRAM)

    def test_an_interrupted_run_is_undone_and_goes_on(self) -> None:
        # When the time is up, what was not tried is neither dead nor alive.
        code, said = self.run_all(sample=9, time_s=1e-9)
        self.assertEqual(code, 0, said)
        self.assertIn("the time is up: 9 of 9 were not tried", said)
        self.assertEqual(Survivors(self.out).runs[0]["untried"], 9)
        self.run_all()
        workshop = Workshop(self.tree)
        workshop.read_commands()
        place = self.root / "build/mutate/sum.o"
        before = place.read_bytes()
        workshop.install("sum.c", b"a mutant")
        with self.assertRaisesRegex(MutateError, "another ci/mutate is at work"):
            Workshop(self.tree)
        workshop.close()
        Workshop(self.tree).close()
        self.assertEqual(place.read_bytes(), before)
        log = self.root / "build/mutate/mutant/verdicts.jsonl"
        count = log.read_text().count("\n")
        log.write_text(log.read_text()[:-30])  # the last line was cut off
        self.run_all()
        self.assertEqual(log.read_text().count("\n"), count)

    def test_a_tree_that_does_not_build_is_said_to_be_one(self) -> None:
        (self.root / "sum_test.c").write_text("int x = ;\n")
        with self.assertRaisesRegex(MutateError, "does not build .* even without a mutant"):
            self.run_all()
        (self.root / "sum_test.c").write_text("#include <criterion/not_here.h>\n")
        with self.assertRaisesRegex(MutateError, "Criterion is missing"):
            self.run_all()


if __name__ == "__main__":
    sys.exit(unittest.main())
