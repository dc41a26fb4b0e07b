"""What may notice a mutant of a kernel: the cases of kernel-sweep and the tests of test-kernels.

Both run on the soft device, which looks for races, uninitialised reads, wrong accesses and wrong
barriers, and fails the launch. A case or a test is asked about a mutant only if it launches a
kernel whose PTX the mutant changed. Each runs first with the kernels as they are: one that does
not pass then is left out and said, and its seconds of processors are what its limit follows from.
"""

import dataclasses
import json
import pathlib
import re
import resource
import tempfile
from collections.abc import Callable, Iterator

from mutation.tests import failed_test, list_tests, run_humbly
from mutation.workshop import Tree, digest, say

SWEEP, TESTS = "kernel-sweep", "test-kernels"
CHECKS = "memory,init,sync,race,fatal"
CASE = re.compile(r"^case ([\d.]+) (\S+) (.*)$", re.M)
WRONG = re.compile(r"^WRONG .*", re.M)
TRACED = re.compile(r'^\{"name":"(\w+)","cat":"kernel"', re.M)
LONG_S = 300.0  # of processors: a test that takes longer without a mutant is left out
SWEEP_S = 1800.0  # for all cases of a group
PATIENCE_S, PATIENCE = 5.0, 10  # the limit: this, and so many times what it takes by itself
CROWD = 20  # times that by the clock, for what waits without computing


@dataclasses.dataclass(frozen=True)
class Killer:
    program: str
    name: str  # of a case, or "suite/test"
    entries: tuple[str, ...]  # that it launches
    about_s: float  # of processors, once: to begin with the cheapest

    def words(self, folder: str, root: pathlib.Path) -> list[str]:
        if self.program == TESTS:
            return [f"{folder}/{TESTS}", "-j1", "--filter", self.name]
        return [f"{folder}/{SWEEP}", "--library", str(root / "build/libtollens-soft.so"),
                "--filter", self.name]


@dataclasses.dataclass(frozen=True)
class Finding:
    kind: str  # passed, killed, timeout
    what: str  # the kind of report, or what was wrong
    seconds: float  # of processors


def run(tree: Tree, words: list[str], limit_s: float, trace: bool = False) -> tuple[Finding, str]:
    """Runs a program of tests, and what it said. Trace: what it launched instead."""
    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    begin = spent()
    with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as temporary:
        report, traced = pathlib.Path(temporary, "report"), pathlib.Path(temporary, "trace")
        more = {"TMPDIR": temporary, "TOLLENS_SOFT_CHECK": CHECKS,
                "TOLLENS_SOFT_REPORT": str(report)}
        more |= {"TOLLENS_SOFT_TRACE": str(traced)} if trace else {}
        code, output = run_humbly(tree, words, more, CROWD * limit_s, limit_s)
        seconds = spent() - begin
        reports = report.read_text(errors="replace").split("\n") if report.exists() else []
        if trace and traced.exists():
            output = traced.read_text(errors="replace")
    if code == 0:
        return Finding("passed", "", seconds), output
    if code is None or seconds >= limit_s:
        return Finding("timeout", "ran too long", seconds), output
    return Finding("killed", _what(reports, output, code), seconds), output


def _what(reports: list[str], output: str, code: int) -> str:
    for line in reports:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if found.get("severity") == "error":
            return str(found["kind"])
    wrong = WRONG.search(output)
    if wrong:
        return "wrong result" if "bytes written out of bounds" in wrong[0] else "refused launch"
    return "wrong result" if failed_test(output) else f"exit code {code}"


class Killers:
    """All, and what is known of them. The map of what launches what stays in the folder while the
    programs are the same; seconds are of this run."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        files = (f"build/{SWEEP}", f"build/{TESTS}", "build/libtollens-soft.so")
        self.stamp = digest(b"".join((tree.root / file).read_bytes() for file in files))
        self.kept = tree.root / tree.folder / "killers.json"
        self.map: dict[str, list[Killer]] = {}  # by "group G" and "suite S"
        self.alone: dict[Killer, float | None] = {}  # None: left out
        self.names: list[str] = []  # of all tests
        try:
            read = json.loads(self.kept.read_text())
            if read["stamp"] == self.stamp:
                self.map = {key: [Killer(a, b, tuple(c), d) for a, b, c, d in rows]
                            for key, rows in read["map"].items()}
        except (OSError, ValueError, KeyError):
            pass  # it is made again

    def _keep(self, key: str, found: list[Killer]) -> list[Killer]:
        self.map[key] = found
        part = self.kept.with_suffix(".part")
        part.write_text(json.dumps({"stamp": self.stamp, "map": {
            key: [dataclasses.astuple(each) for each in rows] for key, rows in self.map.items()}}))
        part.rename(self.kept)
        return found

    def cases(self, group: str) -> list[Killer]:
        """Of a group of kernel-sweep."""
        key = f"group {group}"
        if key in self.map:
            return self.map[key]
        words = [f"build/{SWEEP}", "--library", str(self.tree.root / "build/libtollens-soft.so"),
                 "--group", group, "--cases"]
        found, output = run(self.tree, words, SWEEP_S)
        say(f"  {key}: {found.seconds:.0f} s" + (
            "" if found.kind == "passed" else f", fails without a mutant: {found.what}"))
        return self._keep(key, [Killer(SWEEP, name, tuple(entries.split(",")), float(seconds))
                                for seconds, entries, name in CASE.findall(output)])

    def tests(self, suite: str) -> list[Killer]:
        """Of a suite, each run by itself to see what it launches."""
        key = f"suite {suite}"
        if key in self.map:
            return self.map[key]
        if not self.names:
            self.names = list_tests(dataclasses.replace(self.tree, folder="build"), TESTS)
        made = []
        for name in self.names:
            if not name.startswith(f"{suite}/"):
                continue
            test = Killer(TESTS, name, (), 0)
            found, trace = run(self.tree, test.words("build", self.tree.root), LONG_S, trace=True)
            if found.kind != "passed":
                say(f"  {name} is left out: without a mutant, {found.what}")
                continue
            entries = tuple(sorted(set(TRACED.findall(trace))))
            if entries:
                made.append(Killer(TESTS, name, entries, round(found.seconds, 3)))
        say(f"  {key}: {sum(test.about_s for test in made):.0f} s in {len(made)} tests")
        return self._keep(key, made)

    def passes(self, killer: Killer) -> float | None:
        """The seconds that it takes with the kernels as they are; None: it does not pass."""
        if killer not in self.alone:
            found, _ = run(self.tree, killer.words("build", self.tree.root), LONG_S)
            self.alone[killer] = found.seconds if found.kind == "passed" else None
            if found.kind != "passed":
                say(f"  {killer.name} is left out: without a mutant, {found.what}")
        return self.alone[killer]

    def in_order(self, group: str | None, suites: list[list[str]], entries: list[str],
                 link: Callable[[str], None]) -> Iterator[Killer]:
        """Those that launch one of these entries: cases, then tests of the first suites, then of
        the next, each time the cheapest first; link is called with each program before the first
        of it."""
        linked: list[str] = []
        for every in (lambda: self.cases(group) if group else [],
                      *(lambda few=few: [test for suite in few for test in self.tests(suite)]
                        for few in suites)):
            chosen = [each for each in every() if set(entries) & set(each.entries)]
            for each in sorted(chosen, key=lambda each: each.about_s):
                if each.program not in linked:
                    link(each.program)
                    linked.append(each.program)
                yield each

    def ask(self, killer: Killer) -> Finding | None:
        """About the mutant that is linked; None: it is left out."""
        alone_s = self.passes(killer)
        if alone_s is None:
            return None
        found, _ = run(self.tree, killer.words(self.tree.folder, self.tree.root),
                       PATIENCE_S + PATIENCE * alone_s)
        return found
