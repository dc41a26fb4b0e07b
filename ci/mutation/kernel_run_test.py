#!/usr/bin/env python3
"""Which entries a mutant of a kernel changes, what is asked about them, and what is kept."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from mutation import cuda_operators, kernel_run
from mutation.kernel_bench import Bench, changed_entries
from mutation.kernel_killers import SWEEP, TESTS, Killers, run
from mutation.kernel_parts import Kernels
from mutation.operators import Mutant
from mutation.results import Survivors, Verdict
from mutation.workshop import Tree

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
# A program with three cases; what FAULT names fails, as does the one that always does.
PROGRAM = """#!/bin/sh
case "$*" in
*--cases*) printf 'case %s\\n' '0.300 one slow' '0.100 one,two quick' '0.200 two other' \\
    '0.000 one broken' ;;
*broken*) exit 1 ;;
*--list*) ;;
*) grep -q "${{*##*--filter }}" {fault} && exit 1 ;;
esac
exit 0
"""


def of_row() -> list[Mutant]:
    file = "kernels/row/row.cuh"
    return cuda_operators.mutants(file, (ROOT / file).read_text(encoding="utf-8"))


class WhatChanged(unittest.TestCase):
    def test_entries_are_compared_one_by_one(self) -> None:
        before = PTX.format("", "a", "b")
        self.assertEqual(changed_entries(before, before), [])
        self.assertEqual(changed_entries(before, PTX.format("", "a", "c")), ["two"])
        self.assertEqual(changed_entries(before, PTX.format(".shared x;", "c", "b")), ["one"])

    def test_what_is_outside_of_entries_changes_all(self) -> None:
        before = PTX.format(".func f", "a", "b")
        for after in (PTX.format(".func g", "a", "b"), PTX.format(".func g", "c", "b")):
            self.assertEqual(changed_entries(before, after), ["one", "two"])
        self.assertEqual(changed_entries(PTX.format("", "a", "b"),
                                         PTX.format(".global x;", "a", "b")), ["one", "two"])

    def test_the_draw_stays_where_mutants_are_added(self) -> None:
        every = of_row()
        some = kernel_run.draw(every[:-5], 6, 1)
        both = kernel_run.draw(every, 6, 1)
        self.assertEqual([each for each in both if each not in every[-5:]],
                         some[:len([each for each in both if each not in every[-5:]])])
        self.assertNotEqual(some, kernel_run.draw(every[:-5], 6, 2))
        self.assertEqual(len({each.operator for each in both[:2]}), 2)


class WhatIsAsked(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        self.fault = self.root / "fault"
        for folder, fault in (("build", os.devnull), ("made", str(self.fault))):
            (self.root / folder).mkdir()
            program = self.root / folder / SWEEP
            program.write_text(PROGRAM.format(fault=fault))
            program.chmod(0o755)
        for name in (TESTS, "libtollens-soft.so"):
            (self.root / "build" / name).write_text("")
        self.tree = Tree(self.root, [], [], folder="made")

    def names(self, entries: list[str]) -> list[str]:
        linked: list[str] = []
        found = [each.name for each in Killers(self.tree).in_order(
            "rows", [], entries, linked.append)]
        self.assertEqual(linked, [SWEEP] if found else [])
        return found

    def test_the_cheapest_case_that_launches_it_is_first(self) -> None:
        self.assertEqual(self.names(["two"]), ["quick", "other"])
        self.assertEqual(self.names(["one"]), ["broken", "quick", "slow"])
        self.assertEqual(self.names(["three"]), [])

    def test_a_case_that_fails_without_a_mutant_says_nothing(self) -> None:
        self.fault.write_text("slow\n")
        killers = Killers(self.tree)
        broken, quick, slow = killers.in_order("rows", [], ["one"], lambda program: None)
        self.assertIsNone(killers.ask(broken))
        kinds = [found.kind for found in (killers.ask(quick), killers.ask(slow)) if found]
        self.assertEqual(kinds, ["passed", "killed"])

    def test_a_limit_is_of_processors(self) -> None:
        words = ["sh", "-c", "while :; do :; done"]
        self.assertEqual(run(self.tree, words, 1)[0].kind, "timeout")
        self.assertEqual(run(self.tree, ["sleep", "1.5"], 1)[0].kind, "passed")
        self.assertEqual(run(self.tree, ["false"], 1)[0].kind, "killed")


class WhatIsKept(unittest.TestCase):
    def test_each_verdict_is_in_the_file(self) -> None:
        mutant, *_ = of_row()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            survivors = Survivors(path, "kernels.toml")
            survivors.note_judged(mutant, Verdict("killed", "a case", 1.0, "", ""))
            survivors.write()
            again = Survivors(path, "kernels.toml")
            self.assertEqual(again.judged[mutant.key]["by"], "a case")


def is_built() -> bool:
    """As the sources are; a build that is older lacks objects that the command links."""
    try:
        done = subprocess.run(["ninja", "-n", f"build/{SWEEP}", "build/libtollens-soft.so"],
                              cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return False
    return "no work to do" in done.stdout


@unittest.skipUnless(is_built(), f"build/{SWEEP} is not as the sources are")
class TheImage(unittest.TestCase):
    def test_the_linked_program_has_the_other_image(self) -> None:
        """PTX that no device takes: if the case passed, mutants would not be run at all."""
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(ROOT, pathlib.Path(folder), Kernels(ROOT), "true")
            self.addCleanup(bench.close)
            bench.pack("softmax_1_naive", ".version 6.4\n.target sm_75\nnothing\n")
            bench.link(SWEEP)
            library = ROOT / "build/libtollens-soft.so"
            for at, code in ((ROOT / "build", 0), (pathlib.Path(folder), 1)):
                done = subprocess.run([at / SWEEP, "--library", library, "--filter",
                                       "softmax naive f32"], capture_output=True, check=False)
                self.assertEqual(done.returncode, code, at)


if __name__ == "__main__":
    sys.exit(unittest.main())
