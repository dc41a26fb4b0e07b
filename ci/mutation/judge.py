"""One run of ci/mutate: draws mutants, tries each, and says what came of it."""

import argparse
import collections
import hashlib
import json
import pathlib
import subprocess
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib  # type: ignore[no-redef]

from mutation.operators import Mutant, mutants
from mutation.running import MutateError, Suites, locked, say

HEAD = """\
# Mutants that no test notices. Written by ci/mutate, except "equivalent": there a person says why
# no test can notice this one. An entry with a reason is kept, and ci/mutate --check demands that
# its line is still in the file; one without a reason is a test that somebody owes.
"""
IDENTITY = ("file", "operator", "before", "after", "nth")  # what Mutant.key is made of
KEYS = {*IDENTITY, "line", "tests", "equivalent"}


class Made(NamedTuple):
    """A mutant, built into something that tests run."""
    what: str  # "" or the kernel
    refused: str = ""  # why no compiler takes it
    names: Iterator[str] | None = None  # of suites and cases; None: the code is as without it


class Bench:
    """Where mutants are made and tried: CBench and CudaBench say how."""
    record: str  # the file of survivors
    tried: str  # the folder of the programs with the mutant
    even = False  # whether the operators take turns in a sample
    suites: Suites

    def __init__(self, root: pathlib.Path, folder: pathlib.Path,
                 environment: dict[str, str]) -> None:
        self.root, self.folder, self.environment = root, folder, environment
        self.texts: dict[str, str] = {}
        self.known: dict[str, list[Mutant]] = {}

    def mutants(self, file: str) -> list[Mutant]:
        if file not in self.known:
            self.texts[file] = (self.root / file).read_text(encoding="utf-8")
            self.known[file] = mutants(file, self.texts[file], self.edits)
        return self.known[file]


def chosen(bench: Bench, names: list[str]) -> list[Mutant]:
    """The mutants of the files, folders and FILE:LINE that the user named; all, without a name."""
    everything = bench.files()
    if not names:
        return [mutant for file in everything for mutant in bench.mutants(file)]
    found: dict[str, Mutant] = {}
    for name in names:
        name, _, line = name.partition(":")
        path = pathlib.Path(name).resolve()
        if not path.exists():
            raise MutateError(f"there is no file {name}")
        inside = str(path.relative_to(bench.root)) if path.is_relative_to(bench.root) else name
        files = [file for file in everything if file == inside or file.startswith(f"{inside}/")]
        if not files:
            raise MutateError(f"{name} has nothing to mutate; ci/mutate takes C of the libraries "
                              "and of tollens, and with --kernels the CUDA sources that "
                              "kernel-sweep or test-kernels runs")
        found.update((mutant.key, mutant) for file in files for mutant in bench.mutants(file)
                     if line in ("", str(mutant.line)))
    return list(found.values())


def drawn(everything: list[Mutant], count: int | None, seed: int, even: bool) -> list[Mutant]:
    """A random sample. It stays nearly the same when some sources change, because the place of a
    mutant depends only on itself and the seed. Even: the operators take turns."""
    if not count or (count >= len(everything) and not even):
        return everything
    shuffled = sorted(everything, key=lambda mutant: hashlib.sha256(
        f"{seed}\t{mutant.key}".encode()).digest())
    if not even:
        return shuffled[:count]
    turns: collections.Counter[str] = collections.Counter()
    order = []
    for place, mutant in enumerate(shuffled):
        turns[mutant.operator] += 1
        order.append((turns[mutant.operator], place))
    return [shuffled[place] for _, place in sorted(order)[:count]]


class Survivors:
    """The committed file, in which a person argues that a mutant is equivalent."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.entries: dict[str, dict[str, Any]] = {}
        if not self.path.exists():
            return
        try:
            read = tomllib.loads(self.path.read_text(encoding="utf-8"))
            for entry in read.get("survivors", []):
                if set(entry) - KEYS or not isinstance(entry["equivalent"], str):
                    raise ValueError(f"the entry of {entry['file']}:{entry['line']} is not one")
                self.entries["\t".join(str(entry.get(key, 0)) for key in IDENTITY)] = entry
        except (ValueError, KeyError, OSError) as error:
            raise MutateError(f"{self.path}: {error!r}") from error

    def argument(self, key: str) -> str:
        return str(self.entries.get(key, {}).get("equivalent", "")).strip()

    def note(self, mutant: Mutant, tests: str | None) -> None:
        """Takes up a survivor of these tests, with the argument that is there. Without tests drops
        it, unless it is argued: then its argument is wrong, and the run says so."""
        argument = self.argument(mutant.key)
        if tests is not None:
            row = {key: getattr(mutant, key) for key in ("file", "line", *IDENTITY[1:])
                   if key != "nth" or mutant.nth}
            self.entries[mutant.key] = {**row, "tests": tests, "equivalent": argument}
        elif not argument:
            self.entries.pop(mutant.key, None)

    def forget(self, file: str, keys: set[str]) -> None:
        """Of a file that was read again: what is no mutant of it any more and was not argued."""
        self.entries = {key: entry for key, entry in self.entries.items()
                        if entry["file"] != file or key in keys or self.argument(key)}

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entries = sorted(self.entries.values(), key=lambda entry: (
            entry["file"], entry["line"], entry["operator"], entry["after"]))
        # One line per entry. A JSON string of these characters is also one of TOML.
        body = "".join("  { " + ", ".join(
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items())
            + " },\n" for entry in entries)
        new = self.path.with_suffix(".new")
        new.write_text(f"{HEAD}\nsurvivors = [\n{body}]\n", encoding="utf-8")
        new.rename(self.path)


class Judge:
    def __init__(self, bench: Bench, survivors: Survivors) -> None:
        self.bench, self.survivors = bench, survivors
        self.counts: collections.Counter[str] = collections.Counter()  # by kind of verdict
        self.argued = self.left = 0  # survivors with an argument, and without

    def verdict(self, mutant: Mutant) -> tuple[str, str]:
        """killed, timeout, same code, refused, survived or untried, and by what."""
        asked = []
        try:
            for made in self.bench.make(mutant):
                if made.refused:
                    return "refused", made.refused
                if made.names is None:
                    continue
                kind, by = self._ask(made.what, made.names)
                if kind != "survived":
                    return kind, by
                asked.append(by)
        except subprocess.CalledProcessError as error:
            return "untried", str(error)
        return ("survived", "; ".join(asked)) if asked else ("same code", "")

    def _ask(self, what: str, names: Iterator[str]) -> tuple[str, str]:
        ran = []
        for name in names:
            found = self.bench.suites.ask(self.bench.tried, name)
            if found is None:
                continue
            ran.append(name)
            if found.kind != "passed":
                return found.kind, f"{name}: {found.what}"
        some = ", ".join(ran[:8]) + (f" and {len(ran) - 8} more" if len(ran) > 8 else "")
        return "survived", (f"{what}: " if what else "") + (some or "no test executes the line")

    def judge(self, mutant: Mutant, place: str) -> None:
        """Says and notes the verdict on a mutant."""
        begin = time.monotonic()
        kind, by = self.verdict(mutant)
        self.counts[kind] += 1
        say(f"{place} {kind:9} {mutant.file}:{mutant.line} {mutant.operator}  {by}"
            f"  {time.monotonic() - begin:.1f} s")
        if kind == "untried":
            return
        self.survivors.note(mutant, by if kind == "survived" else None)
        is_argued = bool(self.survivors.argument(mutant.key))
        if kind == "survived":
            say(f"         - {mutant.before}\n         + {mutant.after}")
            self.argued, self.left = self.argued + is_argued, self.left + (not is_argued)
        elif is_argued and kind in ("killed", "timeout"):
            say("         it is argued to be equivalent, and a test noticed it")
            self.left += 1
        self.survivors.write()

    def sum_up(self) -> int:
        counts, dead = self.counts, self.counts["killed"] + self.counts["timeout"]
        say(f"{dead} killed ({counts['timeout']} of them ran too long), {counts['same code']} same "
            f"code, {counts['refused']} refused by the compiler, {self.argued} argued to be "
            f"equivalent, {self.left} survived, {counts['untried']} not tried")
        if dead + self.left:
            say(f"{100 * dead / (dead + self.left):.1f} % of {dead + self.left} noticed; the "
                f"survivors are in {self.survivors.path}")
        return 1 if self.left else 0


def check(bench: Bench, survivors: Survivors) -> int:
    """Whether each entry that is argued to be equivalent is still a mutant of the sources."""
    wrong, files = 0, set(bench.files())
    argued = [key for key in survivors.entries if survivors.argument(key)]
    for key in argued:
        entry = survivors.entries[key]
        file = entry["file"]
        if file not in files or key not in {mutant.key for mutant in bench.mutants(file)}:
            wrong += 1
            say(f"{survivors.path}: {file}:{entry['line']}: what is argued to be equivalent is "
                f"not there any more: {entry['before']}")
    if not wrong:
        say(f"mutate: {len(argued)} arguments in {survivors.path.name}, all about lines that are "
            "there")
    return 1 if wrong else 0


def go(bench: Bench, options: argparse.Namespace) -> int:
    survivors = Survivors(options.out / bench.record)
    if options.check:
        return check(bench, survivors)
    everything = chosen(bench, options.files)
    sample = drawn(everything, options.sample, options.seed, bench.even)
    if options.list:
        for mutant in sample:
            say(f"{mutant.file}:{mutant.line}: {mutant.operator}: {mutant.before}  ->  "
                f"{mutant.after}")
        return 0
    files = {mutant.file for mutant in everything}
    say(f"{len(sample)} of {len(everything)} mutants of {len(files)} files")
    for file in files:
        survivors.forget(file, {mutant.key for mutant in bench.mutants(file)})
    judge = Judge(bench, survivors)
    with locked(bench.folder):
        bench.prepare()
        for number, mutant in enumerate(sample, 1):
            judge.judge(mutant, f"{number:4}/{len(sample)}")
    return judge.sum_up()
