#!/usr/bin/env python3
"""What ci/mutate refuses, draws and keeps, and what of PTX it compares. On a small program with
Criterion's tests: the mutants which a test notices are called killed and the others survive,
arguments are kept, and an interrupted run is undone."""

import argparse
import contextlib
import io
import pathlib
import re
import subprocess
import sys
import unittest
import unittest.mock

import trial
from mutation import running
from mutation.c_bench import CBench
from mutation.cuda_bench import CudaBench, changed_entries
from mutation.judge import Survivors, drawn, go
from mutation.operators import cuda_edits, mutants
from mutation.running import MutateError, locked, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
PTX = ".target sm_75\n{0}\n.visible .entry one(\n)\n{{ {1} }}\n.visible .entry two()\n{{ {2} }}\n"


class Kernel(unittest.TestCase):
    def test_entries_are_compared_one_by_one(self) -> None:
        before = PTX.format(".func f", "a", "b")
        for after, changed in (
                (before, []), (PTX.format(".func f", "a", "c"), ["two"]),
                (PTX.format(".func g", "c", "b"), ["one", "two"]),  # which may call it
                (PTX.format(".func f .global x;", "a", "b"), ["one", "two"])):
            self.assertEqual(changed_entries(before, after), changed)

    def test_a_header_is_in_all_kernels_that_include_it(self) -> None:
        found = CudaBench(ROOT, {})
        self.assertIn("softmax_1_naive", found.with_file("kernels/row/row.cuh"))
        self.assertIn("kernels/row/row.cuh", found.files())
        self.assertIn("softmax", found.suites_of("softmax_1_naive")[0])
        own, others = found.suites_of("collective_3_columns")
        self.assertEqual((own.count("gather_columns"), others.count("gather_columns")), (0, 1))

    def test_the_draw_stays_where_mutants_are_added(self) -> None:
        file = "kernels/row/row.cuh"
        every = mutants(file, (ROOT / file).read_text(encoding="utf-8"), cuda_edits)
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
                            (["--sample", "0"], "--sample must be 1 or more")):
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


PROGRAM = """\
/* Of the numbers below n; -1 for a negative one. */
int sum_below(int n) {
    int sum = 0;
    if (n < 0) return -1;
    for (long i = 0; i < n; i++) {
        sum += i;
    }
    return sum;
}

int unwatched(int n) {
    return n + 3;
}
"""
TESTS = """\
#include <criterion/criterion.h>
int sum_below(int n), unwatched(int n);

Test(sum, of_numbers_below_five) {
    cr_assert_eq(sum_below(5), 10);
    cr_assert_eq(sum_below(-2), -1);
}

Test(sum, runs) {
    unwatched(1);
}
"""
NINJA = """\
rule cc
  command = gcc -O1 $flags -c $in -o $out
rule exe
  command = gcc $in -o $out $libs
build build/mutate/sum.o: cc room/sum.c
build build/mutate/sum_test.o: cc room/sum_test.c
  flags = {}
build build/mutate/git2_stub.o: cc {}
build build/mutate/test-sum: exe build/mutate/sum.o build/mutate/sum_test.o build/mutate/git2_stub.o
  libs = {}
"""


def criterion() -> tuple[str, str]:
    """Flags of the compiler and of the linker, as configure.py found them."""
    config = ROOT / "build/config.ninja"
    if not config.exists():
        raise unittest.SkipTest("there is no build; run ./configure.py")
    lines = dict(line.split(" = ", 1) for line in config.read_text().split("\n") if " = " in line)
    return lines.get("criterion_cflags", ""), lines.get("criterion_libs", "")


class ASmallTree(trial.Trial):
    def setUp(self) -> None:
        super().setUp()
        cflags, libs = criterion()
        stub = ROOT / "hypotheses/harness/run/git2_stub.c"  # Debian's Criterion asks for libgit2
        patience = unittest.mock.patch.object(running, "PATIENCE_S", 2.0)
        patience.start()
        self.addCleanup(patience.stop)
        self.source, self.tests = (self.write(f"room/sum{end}.c", text) for end, text in (
            ("", PROGRAM), ("_test", TESTS)))
        self.write("build.ninja", NINJA.format(cflags, stub, libs))
        self.write(".gitignore", "build/\nout/\n")
        self.expect(0, "", "git", "init", "-q")

    def bench(self) -> CBench:
        return CBench(self.folder, ["room"], ["test-sum"], {})

    def survivors(self) -> Survivors:
        return Survivors(self.folder / "out/survivors.toml")

    def run_all(self, **changes: object) -> tuple[int, str]:
        given = argparse.Namespace(**{"sample": None, "seed": 1, "out": self.folder / "out",
                                      "list": False, "check": False, "files": [], **changes})
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = go(self.bench(), given)
        return code, said.getvalue()

    def test_what_a_test_notices_is_killed_and_the_rest_survives(self) -> None:
        code, said = self.run_all()
        self.assertEqual(code, 1, said)
        for line, operator, verdict in (
                (3, "constant", "killed"), (4, "negated", "killed"), (6, "arithmetic", "killed"),
                (4, "deleted", "killed"), (5, "arithmetic", "timeout"),
                (4, "relational", "survived"),  # of nothing the sum is 0, or -1: nobody asks
                (12, "arithmetic", "survived")):
            self.assertEqual(re.findall(rf" (\S+) +room/sum\.c:{line} {operator} ", said),
                             [verdict], f"{line} {operator}: {said}")
        self.assertEqual(self.source.read_text(), PROGRAM)
        survivors = self.survivors()
        self.assertEqual({entry["line"] for entry in survivors.entries.values()}, {4, 5, 12})

        # Argued entries are kept, with their line, and no longer counted against the tests.
        for entry in survivors.entries.values():
            entry["equivalent"] = 'said "so"'
        survivors.write()
        self.source.write_text("\n" + PROGRAM)
        code, said = self.run_all()
        self.assertEqual(code, 0, said)
        kept = self.survivors().entries.values()
        self.assertEqual({entry["line"] for entry in kept}, {5, 6, 13})
        self.assertEqual({entry["equivalent"] for entry in kept}, {'said "so"'})

        # A test that kills one of them shows that its argument is wrong.
        self.tests.write_text(TESTS.replace("(-2), -1", "(0), 0"))
        code, said = self.run_all()
        self.assertEqual(code, 1, said)
        self.assertIn("argued to be equivalent, and a test noticed it", said)

        # And a line that is gone takes its argument with it.
        self.source.write_text(PROGRAM.replace("n + 3", "n * 3"))
        code, said = self.run_all(check=True)
        self.assertEqual(code, 1)
        self.assertIn("sum.c:13: what is argued to be equivalent is not there any more", said)

    def test_an_interrupted_run_is_undone(self) -> None:
        # What could not be tried is neither dead nor alive.
        with unittest.mock.patch.object(CBench, "make", side_effect=subprocess.CalledProcessError(
                1, "a program")):
            code, said = self.run_all(sample=3)
        self.assertEqual(code, 0, said)
        self.assertIn("0 survived, 3 not tried", said)
        bench = self.bench()
        with locked(bench.folder), self.assertRaisesRegex(MutateError, "another ci/mutate is at"):
            self.run_all()
        bench.prepare()
        mutant = bench.mutants("room/sum.c")[0]
        copied = self.folder / "build/mutate/tree/room/sum.c"
        made = bench.make(mutant)
        next(made)
        self.assertEqual(copied.read_text(), mutant.apply(PROGRAM))
        self.bench().prepare()
        self.assertEqual(copied.read_text(), PROGRAM)
        made.close()

    def test_a_tree_that_does_not_build_is_said_to_be_one(self) -> None:
        self.tests.write_text("#include <criterion/not_here.h>\n")
        with self.assertRaisesRegex(MutateError, "(?s)even without a mutant.*criterion/not_here"):
            self.run_all()


if __name__ == "__main__":
    sys.exit(unittest.main())
