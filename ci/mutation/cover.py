"""Which test executes which line, for ci/mutate: each test runs once in the coverage build, with a
folder of its own for gcov's counts. A test that was mapped is mapped again when a file that it
executes has changed, its own among them.
"""

import concurrent.futures
import gzip
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from typing import Any

from mutation.tests import run_tests
from mutation.workshop import MutateError, Tree, digest

LIMIT_S = 600.0  # of one test, in the coverage build
WRITE_S = 20.0
HEAD_BYTES, COUNTERS = 16, 0x01a10000  # of a .gcda file
Test = dict[str, Any]  # program, seconds, stamp, lines: {file: one bit a line, in hexadecimal}


def list_tests(tree: Tree, program: str) -> list[str]:
    """As "suite/test", which is also how Criterion selects one."""
    listed = subprocess.run([f"{tree.folder}/{program}", "--list"], cwd=tree.root, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found, suite = [], ""
    for line in listed.stdout.split("\n"):
        heading = re.match(r"(\w+): \d+ tests?", line)
        name = re.search(r"── (\w+)", line)
        if heading:
            suite = heading[1]
        elif name:
            found.append(f"{suite}/{name[1]}")
    return found


def counts_something(data: bytes) -> bool:
    """Whether a file of gcov's counts has one that is not 0. A program writes such a file for each
    of its objects, and a test executes few of them: gcov is asked about these alone. After the head
    come records of a tag, a length in bytes and the content; a negative length stands for as many
    bytes that are all 0. Before GCC 12 lengths were in words: then all files count."""
    if data[7:3:-1] < b"B2":
        return True
    at = HEAD_BYTES
    while at + 8 <= len(data):
        tag, length = struct.unpack_from("<Ii", data, at)
        at += 8
        if tag == COUNTERS and length > 0 and any(data[at:at + length]):
            return True
        at += max(length, 0)
    return False


class Map:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.path = tree.root / tree.folder / "mutant" / "coverage.json.gz"
        self.tests: dict[str, Test] = {}
        self.code: dict[str, set[int]] = {}  # the lines of each file that have code
        if self.path.exists():
            read = json.loads(gzip.decompress(self.path.read_bytes()))
            self.tests = read["tests"]
            self.code = {file: set(lines) for file, lines in read["code"].items()}
        self.digests: dict[str, str] = {}

    def update(self, say: Callable[[str], None], ready: Callable[[], None],
               jobs: int = 1) -> None:
        """Maps the test programs that have changed since they were mapped, by so many processes.
        ready makes the coverage build; it is called only if a program must be mapped."""
        known = {name: program for program in self.tree.programs
                 for name in list_tests(self.tree, program)}
        self.tests = {name: test for name, test in self.tests.items()
                      if known.get(name) == test["program"]}
        stale = [name for name in known if not self._is_fresh(name)]
        if not stale:
            return
        say(f"finding out which lines {len(stale)} of {len(known)} tests execute")
        ready()
        shutil.rmtree(self._counts(), ignore_errors=True)
        written = time.monotonic()
        workers = concurrent.futures.ProcessPoolExecutor(
            jobs, multiprocessing.get_context("fork"), _begin, (self,))
        try:
            with workers:
                found = workers.map(_map_one, [(known[name], name) for name in stale])
                for number, (name, (test, code)) in enumerate(zip(stale, found), 1):
                    self._take(name, test, code)
                    if "fails" in test:
                        say(f"  {name} fails without a mutant, and is left out")
                    if time.monotonic() - written > WRITE_S:
                        written = time.monotonic()
                        self._write()
                        say(f"  {number} of {len(stale)} tests")
        finally:
            self._write()

    def _take(self, name: str, test: Test, code: dict[str, set[int]]) -> None:
        self.tests[name] = test
        for file, lines in code.items():
            self.code.setdefault(file, set()).update(lines)

    def _counts(self) -> pathlib.Path:
        return self.tree.root / self.tree.folder / "mutant" / "counts"

    def _write(self) -> None:
        code = {file: sorted(lines) for file, lines in self.code.items()}
        data = json.dumps({"tests": self.tests, "code": code}).encode()
        new = self.path.with_suffix(".new")
        new.write_bytes(gzip.compress(data, 1))
        new.rename(self.path)

    def _stamp(self, files: list[str]) -> str:
        """Changes where one of the files does."""
        for file in files:
            if file not in self.digests:
                path = self.tree.root / file
                self.digests[file] = digest(path.read_bytes()) if path.exists() else "gone"
        return digest(" ".join(self.digests[file] for file in sorted(files)).encode())

    def _is_fresh(self, name: str) -> bool:
        test = self.tests.get(name)
        if test is None or "fails" not in test:
            return test is not None and test["stamp"] == self._stamp(list(test["lines"]))
        return bool(test.get("stamp") == self._stamp([f"{self.tree.coverage}/{test['program']}"]))

    def make_folder(self) -> pathlib.Path:
        """A folder for this process's counts, with the notes beside which gcov looks for them."""
        built = self.tree.root / self.tree.coverage
        counts = self._counts() / str(os.getpid())
        for notes in built.rglob("*.gcno"):
            place = counts / notes.relative_to(built)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(notes)
        return counts

    def map_test(self, counts: pathlib.Path, program: str, name: str) -> Test:
        """The lines that the test executes; those that have code are added to self.code."""
        for old in counts.rglob("*.gcda"):
            old.unlink()
        strip = len((self.tree.root / self.tree.coverage).parts) - 1
        outcome = run_tests(self.tree, self.tree.coverage, program, [name], LIMIT_S, {
            "GCOV_PREFIX": str(counts), "GCOV_PREFIX_STRIP": str(strip)})
        test: Test = {"program": program, "seconds": round(outcome.seconds, 2), "lines": {}}
        if outcome.verdict != "passed":  # too slow here, say; another program is another chance
            stamp = self._stamp([f"{self.tree.coverage}/{program}"])
            return {**test, "fails": outcome.verdict, "stamp": stamp}
        bits: dict[str, int] = {}
        written = [str(path) for path in counts.rglob("*.gcda")
                   if counts_something(path.read_bytes())]
        if written:
            self._read(written, bits)
        test["lines"] = {file: f"{lines:x}" for file, lines in bits.items() if lines}
        return {**test, "stamp": self._stamp(list(test["lines"]))}

    def _read(self, counts: list[str], bits: dict[str, int]) -> None:
        """What gcov says of some files: the lines executed, and those that have code."""
        done = subprocess.run([os.environ.get("GCOV", "gcov"), "--json-format", "--stdout",
                               *counts], cwd=self.tree.root, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        # It also fails over a file that a killed child process left in parts, and reads the others.
        if done.returncode != 0 and not done.stdout.strip():
            raise MutateError(f"gcov fails: {done.stderr.decode(errors='replace')[-300:]}")
        for document in done.stdout.split(b"\n"):
            for part in json.loads(document)["files"] if document.strip() else ():
                if part["file"].startswith("/"):
                    continue
                code = self.code.setdefault(part["file"], set())
                for line in part["lines"]:
                    code.add(line["line_number"])
                    if line["count"] != 0:
                        bits[part["file"]] = bits.get(part["file"], 0) | 1 << line["line_number"]

    def covering(self, file: str, first: int, last: int) -> list[str]:
        """The tests that execute one of the lines: those that stand in the file's folder first, and
        then those that take little time. What is inside a macro's call counts for gcov as the line
        where the call begins, so the search goes up to a line that has code."""
        code = self.code.get(file, set())
        while first > 1 and first not in code:
            first -= 1
        mask = (1 << last + 1) - (1 << first)
        found = [(not self._is_beside(file, test), test["seconds"], name)
                 for name, test in self.tests.items()
                 if int(test["lines"].get(file, "0"), 16) & mask]
        return [name for _, _, name in sorted(found)]

    def _is_beside(self, file: str, test: Test) -> bool:
        folder = file.rpartition("/")[0]
        return any(name.endswith("_test.c") and name.rpartition("/")[0] == folder
                   for name in test["lines"])


_mapping: tuple[Map, pathlib.Path]  # of a process that maps


def _begin(mapped: Map) -> None:
    global _mapping
    _mapping = mapped, mapped.make_folder()


def _map_one(what: tuple[str, str]) -> tuple[Test, dict[str, set[int]]]:
    """A test's lines, and the lines with code that it showed."""
    mapped, counts = _mapping
    mapped.code = {}
    return mapped.map_test(counts, *what), mapped.code
