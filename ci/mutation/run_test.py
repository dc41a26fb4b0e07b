#!/usr/bin/env python3
"""On a small program with Criterion's tests: the mutants which a test notices are called killed and
the others survive, arguments are kept, and an interrupted run is undone."""

import argparse
import contextlib
import io
import pathlib
import re
import sys
import unittest
import unittest.mock

import trial
from mutation import running
from mutation.c_bench import CBench
from mutation.judge import go
from mutation.running import MutateError
from mutation.results import Survivors

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

int unwatched(int n) {
    return n + 3;
}
"""
TESTS = """\
#include "sum.h"
#include <criterion/criterion.h>

Test(sum, of_numbers_below_five) {
    cr_assert_eq(sum_below(5), 10);
    cr_assert_eq(sum_below(-2), -1);
}

Test(sum, runs) {
    unwatched(1);
}
"""
HEADER = """\
int sum_below(int n);
int unwatched(int n);
"""
NINJA = """\
rule cc
  command = gcc -O1 $flags -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
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
        self.write("room/sum.h", HEADER)
        self.write("build.ninja", NINJA.format(cflags, stub, libs))
        self.write(".gitignore", "build/\nout/\n")
        self.expect(0, "", "git", "init", "-q")

    def bench(self) -> CBench:
        return CBench(self.folder, ["room"], ["test-sum"], {})

    def survivors(self) -> Survivors:
        return Survivors(self.folder / "out/survivors.toml")

    def run_all(self, **changes: object) -> tuple[int, str]:
        given = argparse.Namespace(sample=None, seed=1, out=self.folder / "out", limit=0,
                                   time=0, list=False, check=False, files=[])
        vars(given).update(changes)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = go(self.bench(), given)
        return code, said.getvalue()

    def test_what_a_test_notices_is_killed_and_the_rest_survives(self) -> None:
        code, said = self.run_all()
        self.assertEqual(code, 1, said)
        for line, operator, verdict in (
                (5, "constant", "killed"), (6, "negated", "killed"), (8, "arithmetic", "killed"),
                (6, "deleted", "killed"), (7, "arithmetic", "timeout"),
                (6, "relational", "survived"),  # of nothing the sum is 0, or -1: nobody asks
                (14, "arithmetic", "survived")):
            self.assertEqual(re.findall(rf" (\S+) +room/sum\.c:{line} {operator} ", said),
                             [verdict], f"{line} {operator}: {said}")
        self.assertEqual(self.source.read_text(), PROGRAM)
        survivors = self.survivors()
        self.assertEqual({entry["line"] for entry in survivors.entries.values()}, {6, 7, 14})

        # Argued entries are kept, with their line, and no longer counted against the tests.
        for entry in survivors.entries.values():
            entry["equivalent"] = 'said "so"'
        survivors.write()
        self.source.write_text("\n" + PROGRAM)
        code, said = self.run_all()
        self.assertEqual(code, 0, said)
        kept = self.survivors().entries.values()
        self.assertEqual({entry["line"] for entry in kept}, {7, 8, 15})
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
        self.assertIn("sum.c:15: what is argued to be equivalent is not there any more", said)

    def test_an_interrupted_run_is_undone_and_goes_on(self) -> None:
        # When the time is up, what was not tried is neither dead nor alive.
        code, said = self.run_all(sample=3, time=1e-9)
        self.assertEqual(code, 0, said)
        self.assertIn("0 survived, 3 not tried", said)
        self.assertEqual(self.survivors().runs[0]["untried"], 3)
        bench = self.bench()
        bench.prepare()
        with self.assertRaisesRegex(MutateError, "another ci/mutate is at work"):
            self.bench().prepare()
        mutant = bench.mutants("room/sum.c")[0]
        copied = self.folder / "build/mutate/tree/room/sum.c"
        made = bench.make(mutant)
        next(made)
        self.assertEqual(copied.read_text(), mutant.apply(PROGRAM))
        bench.close()
        again = self.bench()
        again.prepare()
        self.assertEqual(copied.read_text(), PROGRAM)
        again.close()
        self.run_all(sample=3)
        log = self.folder / "build/mutate/verdicts.jsonl"
        count = log.read_text().count("\n")
        log.write_text(log.read_text()[:-30])  # the last line was cut off
        self.run_all(sample=3)
        self.assertEqual(log.read_text().count("\n"), count)

    def test_a_tree_that_does_not_build_is_said_to_be_one(self) -> None:
        for text, said in (("int x = ;\n", "does not build, even without a mutant"),
                           ("#include <criterion/not_here.h>\n", "Criterion is missing")):
            self.tests.write_text(text)
            with self.assertRaisesRegex(MutateError, said):
                self.run_all()


if __name__ == "__main__":
    sys.exit(unittest.main())
