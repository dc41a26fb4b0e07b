"""Which test reaches which mutant: each test runs once in the build with all mutants, none of them
switched on, and the program itself marks those that it came by.

A test is asked again where its file has changed, and where there are mutants that it has not been
asked about.
"""

import gzip
import json
import pathlib
import queue
import re
import time
from collections.abc import Callable
from typing import Any

from mutation.schemata import SEEN_BYTES
from mutation.tests import at_once, list_tests, run_tests
from mutation.workshop import Tree, digest

LIMIT_S = 300.0  # of one test
WRITE_S = 20.0
Test = dict[str, Any]  # program, seconds, stamp, asked, seen; or fails instead of seen
NAME = re.compile(r"^\w*Test\(\s*(\w+)\s*,\s*(\w+)", re.M)


class Reached:
    def __init__(self, tree: Tree, work: pathlib.Path) -> None:
        self.tree, self.work = tree, work
        self.path = work / "reached.json.gz"
        self.tests: dict[str, Test] = {}
        self.asked: list[list[int]] = []  # the sets of mutants that tests were asked about
        if self.path.exists():
            read = json.loads(gzip.decompress(self.path.read_bytes()))
            self.tests, self.asked = read["tests"], read["asked"]
        self.files: dict[str, str] = {}  # where each test stands
        self.digests: dict[str, str] = {}
        self.of: dict[int, list[str]] = {}  # the tests that reach each mutant
        for path in sorted(self.tree.root.rglob("*_test.c")):
            file = str(path.relative_to(self.tree.root))
            if not file.startswith("build/"):
                data = path.read_bytes()
                self.digests[file] = digest(data)
                self.files |= {f"{suite}/{name}": file
                               for suite, name in NAME.findall(data.decode())}

    def stamp(self, name: str) -> str:
        """Changes where the test does; of a test that a macro makes, where any does."""
        file = self.files.get(name)
        return self.digests[file] if file else digest("".join(self.digests.values()).encode())

    def update(self, say: Callable[[str], None], numbers: list[int], jobs: int = 1) -> None:
        known = {name: program for program in self.tree.programs
                 for name in list_tests(self.tree, program)}
        if numbers not in self.asked:
            self.asked.append(numbers)
        now = self.asked.index(numbers)
        enough = {index for index, asked in enumerate(self.asked) if {*numbers} <= {*asked}}
        stale = [(program, name) for name, program in known.items()
                 if not self._is_fresh(name, enough)]
        self.tests = {name: test for name, test in self.tests.items()
                      if name in known or test["program"] not in self.tree.programs}
        if stale:
            self._ask_all(say, stale, now, jobs)
        self.of = {}
        for name in known:
            for number in self.tests[name].get("seen", ()):
                self.of.setdefault(number, []).append(name)

    def _ask_all(self, say: Callable[[str], None], stale: list[tuple[str, str]], now: int,
                 jobs: int) -> None:
        say(f"asking {len(stale)} tests which mutants they reach")
        free: queue.SimpleQueue[pathlib.Path] = queue.SimpleQueue()
        for job in range(jobs):
            free.put(self.work / f"seen{job}")

        def ask(what: tuple[str, str]) -> tuple[str, Test]:
            seen = free.get()
            try:
                return what[1], {**self._ask(seen, *what), "asked": now}
            finally:
                free.put(seen)

        written = time.monotonic()
        try:
            with at_once(jobs) as pool:
                for number, (name, test) in enumerate(pool.map(ask, stale), 1):
                    self.tests[name] = test
                    if time.monotonic() - written > WRITE_S:
                        written = time.monotonic()
                        self._write()
                        say(f"  {number} of {len(stale)} tests")
        finally:
            self._write()

    def _is_fresh(self, name: str, enough: set[int]) -> bool:
        test = self.tests.get(name)
        return (test is not None and "fails" not in test and test["stamp"] == self.stamp(name)
                and test["asked"] in enough)

    def _ask(self, seen: pathlib.Path, program: str, name: str) -> Test:
        seen.write_bytes(b"")
        with seen.open("r+b") as file:
            file.truncate(SEEN_BYTES)
        outcome = run_tests(self.tree, self.tree.folder, program, [name], LIMIT_S,
                            {"TOLLENS_MUTANT_SEEN": str(seen)})
        test: Test = {"program": program, "seconds": round(outcome.seconds, 2),
                      "stamp": self.stamp(name)}
        if outcome.verdict != "passed":
            return {**test, "fails": outcome.verdict}
        found = re.finditer(b"\1", seen.read_bytes())
        return {**test, "seen": [mark.start() for mark in found]}

    def _write(self) -> None:
        used = sorted({test["asked"] for test in self.tests.values()})
        tests = {name: {**test, "asked": used.index(test["asked"])}
                 for name, test in self.tests.items()}
        data = json.dumps({"tests": tests, "asked": [self.asked[index] for index in used]})
        new = self.path.with_suffix(".new")
        new.write_bytes(gzip.compress(data.encode(), 1))
        new.rename(self.path)

    def covering(self, file: str, number: int) -> list[str]:
        """The tests that reach a mutant: first those of the file's own, then those that stand in
        its folder, then the others, and of each the quick ones first."""
        found = [(self._distance(file, name), self.tests[name]["seconds"], name)
                 for name in self.of.get(number, ())]
        return [name for _, _, name in sorted(found)]

    def _distance(self, file: str, name: str) -> int:
        test = self.files.get(name, "")
        if test == f"{file.removesuffix('.c')}_test.c":
            return 0
        return 1 if test.rpartition("/")[0] == file.rpartition("/")[0] else 2

    def stamps(self, tests: list[str]) -> str:
        """Of what may notice a mutant: changes where one of them does, or another comes."""
        return digest(" ".join(f"{name}:{self.tests[name]['stamp']}"
                               for name in sorted(tests)).encode())
