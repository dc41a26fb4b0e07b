"""ci/mutate --kernels: mutants of the kernels' CUDA sources, and the tests that run these kernels.

A mutant is compiled to PTX by nvcc, from a copy of the kernels' folders, as ci/ptx does it. A copy
of the test program is linked with images of the mutant's PTX in front of the library's own, so that
the build stays as it is. The suites of the kernels' folders run on the soft device, which looks for
races, uninitialised reads and wrong accesses, and fails the launch.
"""

import argparse
import concurrent.futures
import dataclasses
import datetime
import fcntl
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess

from mutation import cuda_operators
from mutation.kernel_parts import Kernels
from mutation.operators import Mutant
from mutation.results import Survivors, Verdict
from mutation.run import commit
from mutation.tests import list_tests, run_tests
from mutation.workshop import MutateError, Tree, say

TARGET = re.compile(r"^// Target: (compute_\d+a?)$", re.M)
VERSION = {"compute_75": "6.4", "compute_80": "7.0"}  # of the text, as in ci/ptx; else 8.0
PROGRAM = "test-kernels"
PATIENCE_S, PATIENCE = 30.0, 10


@dataclasses.dataclass
class Bench:
    """Compiles and links mutants, and runs suites."""
    tree: Tree
    kernels: Kernels
    nvcc: str
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)  # of each suite as it is
    known: list[str] = dataclasses.field(default_factory=list)  # all tests
    tests: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # of each suite
    originals: dict[str, str | None] = dataclasses.field(default_factory=dict)  # PTX of kernels

    def __post_init__(self) -> None:
        self.folder = self.tree.root / self.tree.folder
        self.copy = self.folder / "copy"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MutateError(f"another ci/mutate is at work in {self.tree.folder}") from error
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.tree.root / "kernels", self.copy / "kernels",
                        ignore=shutil.ignore_patterns("*.c", "*.md"))
        device = self.folder / "libtollens-soft.so"
        device.unlink(missing_ok=True)
        device.symlink_to(self.tree.root / "build/libtollens-soft.so")
        listed = subprocess.run(["ninja", "-t", "commands", "-s", f"build/{PROGRAM}"], text=True,
                                cwd=self.tree.root, stdout=subprocess.PIPE, check=True).stdout
        self.command = shlex.split(listed.strip().split("\n")[-1])

    def ptx(self, name: str) -> str | None:
        """A kernel's, from the copy as it is; None where nvcc refuses it."""
        source = self.copy / self.kernels.source[name]
        target = TARGET.search(source.read_text(encoding="utf-8"))
        kind = target[1] if target else "compute_75"
        out = self.folder / f"{name}.ptx"
        done = subprocess.run([self.nvcc, "-ptx", f"-arch={kind}", "-o", str(out), str(source)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return None
        text = re.sub(r"^\.version [0-9.]+$", f".version {VERSION.get(kind, '8.0')}",
                      out.read_text(encoding="utf-8"), flags=re.M)
        text = re.sub(r'^\t\.pragma "used_bytes_mask .*\n', "", text, flags=re.M)
        out.write_text(text, encoding="utf-8")
        return text

    def all_ptx(self, names: list[str]) -> dict[str, str | None]:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip(names, pool.map(self.ptx, names)))

    def link(self, names: list[str]) -> None:
        """The test program with the latest PTX of these kernels."""
        objects = []
        for name in names:
            text, made = self.folder / f"{name}.S", self.folder / f"{name}.o"
            subprocess.run(["ci/kernel_image.py", str(text), self.kernels.source[name],
                            str(self.folder / f"{name}.ptx")], cwd=self.tree.root, check=True)
            subprocess.run(["cc", "-c", str(text), "-o", str(made)], check=True)
            objects.append(str(made))
        words = list(self.command)
        words[words.index(f"build/{PROGRAM}")] = str(self.folder / PROGRAM)
        at = words.index("build/libtollens-kernels.a")
        subprocess.run(words[:at] + objects + words[at:], cwd=self.tree.root, check=True)

    def measure(self, suite: str) -> None:
        """Which tests of a suite pass without a mutant, and how long they take."""
        if suite in self.seconds:
            return
        if not self.known:
            self.known = list_tests(dataclasses.replace(self.tree, folder="build"), PROGRAM)
        tests = [name for name in self.known if name.startswith(f"{suite}/")]
        while True:
            outcome = run_tests(self.tree, "build", PROGRAM, tests, 600)
            if outcome.verdict == "passed":
                break
            # A test of planted defects, say, some of which the soft device sees too.
            if outcome.what not in tests or len(tests) == 1:
                raise MutateError(f"{suite} of build/{PROGRAM} fails without a mutant: "
                                  f"{outcome.what}")
            tests.remove(outcome.what)
            say(f"  {outcome.what} fails without a mutant, and is left out")
        self.tests[suite], self.seconds[suite] = tests, outcome.seconds

    def run(self, suites: list[str], limit_s: float) -> tuple[str, str, float]:
        """Kind, by what, and seconds."""
        seconds = 0.0
        ran: list[str] = []
        for suite in sorted(suites, key=lambda suite: self.seconds.get(suite, 0)):
            self.measure(suite)
            outcome = run_tests(self.tree, self.tree.folder, PROGRAM, self.tests[suite],
                                PATIENCE_S + PATIENCE * self.seconds[suite])
            seconds += outcome.seconds
            if outcome.verdict != "passed":
                return ("timeout" if outcome.verdict == "timeout" else "killed", outcome.what,
                        seconds)
            ran.append(suite)
            if limit_s and seconds > limit_s and len(ran) < len(suites):
                return "survived", f"of {len(suites)} suites {', '.join(ran)}", seconds
        return "survived", ", ".join(ran), seconds

    def judge(self, mutant: Mutant, limit_s: float) -> Verdict:
        names = self.kernels.with_file(mutant.file)
        names = [name for name in names if self.kernels.suites([name])]
        changed = self.copy / mutant.file
        text = (self.tree.root / mutant.file).read_text(encoding="utf-8")
        self.originals |= self.all_ptx([name for name in names if name not in self.originals])
        if any(self.originals[name] is None for name in names):
            raise MutateError(f"a kernel with {mutant.file} does not compile without a mutant")
        changed.write_text(mutant.apply(text), encoding="utf-8")
        try:
            after = self.all_ptx(names)
        finally:
            changed.write_text(text, encoding="utf-8")
        if None in after.values():
            return Verdict("refused", "nvcc", 0, "", "")
        others = [name for name in names if self.originals[name] != after[name]]
        if not others:
            return Verdict("same code", "", 0, "", "")
        self.link(others)
        kind, by, seconds = self.run(self.kernels.suites(others), limit_s)
        return Verdict(kind, by, round(seconds, 2), "", "")


def check(root: pathlib.Path, survivors: Survivors) -> int:
    """Whether each argued entry is still a mutant of the sources."""
    wrong = 0
    for key, entry in survivors.entries.items():
        path = root / entry["file"]
        keys = {mutant.key for mutant in cuda_operators.mutants(
            entry["file"], path.read_text(encoding="utf-8"))} if path.exists() else set()
        if survivors.argument(key) and key not in keys:
            wrong += 1
            say(f"{survivors.path}: {entry['file']}:{entry['line']}: what is argued to be "
                f"equivalent is not there any more: {entry['before']}")
    return 1 if wrong else 0


def draw(everything: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """At random, of each operator as many as there are or as its share is: nine of ten mutants are
    of indices."""
    shuffled = random.Random(seed).sample(everything, len(everything))
    turns: dict[str, int] = {}
    order: list[tuple[int, int]] = []
    for place, mutant in enumerate(shuffled):
        turns[mutant.operator] = turns.get(mutant.operator, 0) + 1
        order.append((turns[mutant.operator], place))
    return [shuffled[place] for _, place in sorted(order)[:count]]


def go(bench: Bench, survivors: Survivors, everything: list[Mutant],
       options: argparse.Namespace) -> int:
    sample = draw(everything, options.sample or len(everything), options.seed)
    counts = dict.fromkeys(("killed", "timeout", "same code", "refused", "survived"), 0)
    argued = left = 0
    for number, mutant in enumerate(sample, 1):
        verdict = bench.judge(mutant, options.limit)
        counts[verdict.kind] += 1
        survivors.note(mutant, verdict)
        say(f"{number:4}/{len(sample)} {verdict.kind:9} {mutant.file}:{mutant.line} "
            f"{mutant.operator}  {verdict.by}  {verdict.seconds:.1f} s")
        if verdict.kind == "survived":
            say(f"         - {mutant.before}\n         + {mutant.after}")
            is_argued = bool(survivors.argument(mutant.key))
            argued, left = argued + is_argued, left + (not is_argued)
            survivors.write()
    dead = counts["killed"] + counts["timeout"]
    survivors.note_run({
        "sample": len(sample), "seed": options.seed, "files": " ".join(options.files),
        "of": len(everything), "limit_s": options.limit, "commit": commit(bench.tree),
        "date": datetime.date.today().isoformat(), "killed": dead,
        "same_code": counts["same code"], "refused": counts["refused"], "argued": argued,
        "survived": left})
    survivors.write()
    say(f"{dead} killed ({counts['timeout']} of them ran too long), {counts['same code']} same "
        f"code, {counts['refused']} refused by nvcc, {argued} argued to be equivalent, {left} "
        "survived")
    return 1 if left else 0


def main(root: pathlib.Path, environment: dict[str, str], options: argparse.Namespace) -> int:
    survivors = Survivors(options.out, "kernels.toml")
    if options.check:
        return check(root, survivors)
    kernels = Kernels(root)
    files = [file for file in kernels.files
             if not options.files or any(file == name or file.startswith(f"{name.rstrip('/')}/")
                                         for name in options.files)]
    everything = [mutant for file in files
                  for mutant in cuda_operators.mutants(
                      file, (root / file).read_text(encoding="utf-8"))]
    if options.list:
        for mutant in everything:
            say(f"{mutant.file}:{mutant.line}: {mutant.operator}: {mutant.before}  ->  "
                f"{mutant.after}")
        return 0
    nvcc = os.environ.get("NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if shutil.which(nvcc) is None:
        raise MutateError("--kernels needs nvcc; NVCC names it")
    done = subprocess.run(["ninja", "--quiet", f"build/{PROGRAM}", "build/libtollens-soft.so"],
                          cwd=root, check=False)
    if done.returncode != 0:
        raise MutateError(f"build/{PROGRAM} does not build")
    tree = Tree(root, [], [PROGRAM], folder="build/mutate-kernels", environment={
        **environment, "TOLLENS_SOFT_CHECK": "memory,init,sync,race,fatal"})
    say(f"{min(options.sample or len(everything), len(everything))} of {len(everything)} mutants "
        f"of {len(files)} files")
    return go(Bench(tree, kernels, nvcc), survivors, everything, options)
