"""ci/mutate --kernels: mutants of the kernels' CUDA sources, and what notices them.

Of each kernel with the edited file, the cheapest to compile first, the PTX is compared with that
of the unchanged source. If it is the same in all, no test could tell the mutant from the original.
Else what launches the changed entries runs (kernel_killers.py) until one notices.
"""

import argparse
import datetime
import hashlib
import os
import pathlib
import shutil
import subprocess
import time

from mutation import cuda_operators
from mutation.kernel_bench import Bench, changed_entries
from mutation.kernel_killers import SWEEP, TESTS, Killers
from mutation.kernel_parts import Kernels
from mutation.operators import Mutant
from mutation.results import Log, Survivors, Verdict
from mutation.run import commit
from mutation.workshop import QUIET_NINJA, MutateError, Tree, digest, say

KINDS = ("killed", "timeout", "same code", "refused", "survived", "untried")
FOLDER = "build/mutate-kernels"


class Judge:
    def __init__(self, tree: Tree, bench: Bench, killers: Killers, limit_s: float) -> None:
        self.tree, self.bench, self.killers, self.limit_s = tree, bench, killers, limit_s
        self.kernels = bench.kernels
        self.log = Log(bench.folder / "verdicts.jsonl")

    def stamp(self, file: str) -> str:
        stamps = [self.kernels.stamp(name) for name in self.kernels.with_file(file)]
        return digest("".join([self.bench.release, *stamps]).encode())

    def verdict(self, mutant: Mutant) -> Verdict:
        """The verdict of an earlier run where it still holds; else judges, and keeps that."""
        stamp = self.stamp(mutant.file)
        known = self.log.verdicts.get(mutant.key)
        if known and known.holds(stamp, self.killers.stamp):
            return known
        begin = time.monotonic()
        try:
            kind, by = self._try(mutant)
        except (MutateError, subprocess.CalledProcessError) as error:
            return Verdict("untried", str(error), 0, stamp, self.killers.stamp)
        found = Verdict(kind, by, round(time.monotonic() - begin, 1), stamp, self.killers.stamp)
        self.log.add(mutant, found)
        return found

    def _try(self, mutant: Mutant) -> tuple[str, str]:
        names = sorted(self.kernels.with_file(mutant.file), key=self.bench.size)
        asked: list[str] = []
        for name in names:
            text = self.bench.mutant(name, mutant)
            if text is None:
                return "refused", f"nvcc, of {name}"
            entries = changed_entries(self.bench.original(name), text)
            if not entries:
                continue
            self.bench.pack(name, text)
            kind, by = self._ask(name, entries)
            if kind != "survived":
                return kind, by
            asked.append(by)
        if not asked:
            return "same code", f"the same PTX in {', '.join(names)}"
        return "survived", "; ".join(asked)

    def _ask(self, name: str, entries: list[str]) -> tuple[str, str]:
        counts = {SWEEP: 0, TESTS: 0}
        seconds = 0.0
        for killer in self.killers.in_order(
                self.kernels.group.get(name),
                [self.kernels.suites([name]), self.kernels.other_suites(name)], entries,
                self.bench.link):
            if self.limit_s and seconds > self.limit_s:
                return "survived", f"{_asked(name, counts)} before the limit"
            found = self.killers.ask(killer)
            if found is None:
                continue
            counts[killer.program] += 1
            seconds += found.seconds
            if found.kind != "passed":
                return found.kind, f"{killer.program}, {killer.name}: {found.what}"
        return "survived", _asked(name, counts)


def _asked(name: str, counts: dict[str, int]) -> str:
    return f"{name}: {counts[SWEEP]} cases, {counts[TESTS]} tests"


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
    of indices. Nearly the same ones where some of the sources have changed: each mutant has a place
    among those of its operator that depends on nothing but itself and the seed."""
    shuffled = sorted(everything, key=lambda mutant: hashlib.sha256(
        f"{seed}\t{mutant.key}".encode()).digest())
    turns: dict[str, int] = {}
    order: list[tuple[int, int]] = []
    for place, mutant in enumerate(shuffled):
        turns[mutant.operator] = turns.get(mutant.operator, 0) + 1
        order.append((turns[mutant.operator], place))
    return [shuffled[place] for _, place in sorted(order)[:count]]


def go(judge: Judge, survivors: Survivors, everything: list[Mutant],
       options: argparse.Namespace) -> int:
    sample = draw(everything, options.sample or len(everything), options.seed)
    for file in {mutant.file for mutant in everything}:
        survivors.forget(file, {mutant.key for mutant in cuda_operators.mutants(
            file, (judge.tree.root / file).read_text(encoding="utf-8"))})
    counts = dict.fromkeys(KINDS, 0)
    argued = left = 0
    end = time.monotonic() + (options.time or float("inf"))
    for number, mutant in enumerate(sample, 1):
        verdict = Verdict("untried", "the time is up", 0, "", "") \
            if time.monotonic() > end else judge.verdict(mutant)
        counts[verdict.kind] += 1
        say(f"{number:4}/{len(sample)} {verdict.kind:9} {mutant.file}:{mutant.line} "
            f"{mutant.operator}  {verdict.by}  {verdict.seconds:.1f} s")
        if verdict.kind == "untried":
            continue
        survivors.note(mutant, verdict)
        survivors.note_judged(mutant, verdict)
        survivors.write()
        argument = survivors.argument(mutant.key)
        if verdict.kind == "survived":
            say(f"         - {mutant.before}\n         + {mutant.after}")
            argued, left = argued + bool(argument), left + (not argument)
        elif argument and verdict.kind in ("killed", "timeout"):
            say("         it is argued to be equivalent, and a test noticed it")
            left += 1
    dead = counts["killed"] + counts["timeout"]
    survivors.note_run({
        "sample": len(sample), "seed": options.seed, "files": " ".join(options.files),
        "of": len(everything), "limit_s": options.limit, "commit": commit(judge.tree),
        "date": datetime.date.today().isoformat(), "killed": dead,
        "same_code": counts["same code"], "refused": counts["refused"], "argued": argued,
        "survived": left, **({"untried": counts["untried"]} if counts["untried"] else {})})
    survivors.write()
    say(f"{dead} killed ({counts['timeout']} of them ran too long), {counts['same code']} same "
        f"code, {counts['refused']} refused by nvcc, {argued} argued to be equivalent, {left} "
        f"survived, {counts['untried']} not tried")
    if dead + left:
        say(f"{100 * dead / (dead + left):.1f} % of {dead + left} noticed")
    return 1 if left or counts["untried"] else 0


def chosen(root: pathlib.Path, kernels: Kernels, names: list[str]) -> list[Mutant]:
    """Of files, of folders and of FILE:LINE; of all, without a name."""
    found: dict[str, Mutant] = {}
    for file in kernels.files:
        for mutant in cuda_operators.mutants(file, (root / file).read_text(encoding="utf-8")):
            places = (file, f"{file}:{mutant.line}")
            if not names or any(name in places or file.startswith(f"{name.rstrip('/')}/")
                                for name in names):
                found[mutant.key] = mutant
    return list(found.values())


def main(root: pathlib.Path, environment: dict[str, str], options: argparse.Namespace) -> int:
    survivors = Survivors(options.out, "kernels.toml")
    if options.check:
        return check(root, survivors)
    kernels = Kernels(root)
    everything = chosen(root, kernels, options.files)
    sample = draw(everything, options.sample or len(everything), options.seed)
    if options.list:
        for mutant in sample:
            say(f"{mutant.file}:{mutant.line}: {mutant.operator}: {mutant.before}  ->  "
                f"{mutant.after}")
        return 0
    nvcc = os.environ.get("NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if shutil.which(nvcc) is None:
        raise MutateError("--kernels needs nvcc; NVCC names it")
    needed = [f"build/{SWEEP}", f"build/{TESTS}", "build/libtollens-soft.so"]
    done = subprocess.run([QUIET_NINJA, *needed], cwd=root, check=False)
    if done.returncode != 0:
        raise MutateError(f"{', '.join(needed)} do not build")
    tree = Tree(root, [], [TESTS], folder=FOLDER, environment=environment)
    bench = Bench(root, root / FOLDER, kernels, nvcc)
    say(f"{len(sample)} of {len(everything)} mutants of "
        f"{len({mutant.file for mutant in everything})} files")
    return go(Judge(tree, bench, Killers(tree), options.limit), survivors, everything, options)
