"""Mutants of C: one at a time is written into a copy of the tree, built and tested there.

A mutant costs a compilation, linking, and suites of tests until one fails: those of the file's own
tests first, then those of its folder, then the others, the quick ones first.
"""

import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator

from mutation.judge import Killer, Made
from mutation.operators import Mutant, c_mutants, statuses
from mutation.running import MutateError, Suites, build, digest, locked, ninja

STATUSES = "runtime/include/tollens/status.def"
LEFT_OUT = re.compile(r"_(test|scene|stage|maker|stub|stand_in)\.c$"
                      r"|/(test|bench|examples|fuzz|sweep|table|tools|corpus|refused|tune|ladder)/")
BUILT = "build/mutate"  # the folder of the build, in the copy


class CBench:
    record, even = "survivors.toml", False

    def __init__(self, root: pathlib.Path, rooms: list[str], programs: list[str],
                 environment: dict[str, str]) -> None:
        self.root, self.rooms, self.programs, self.environment = root, rooms, programs, environment
        self.folder = root / BUILT
        self.copy = self.folder / "tree"
        status = root / STATUSES
        self.status = statuses(status.read_text() if status.exists() else "")
        self.texts: dict[str, str] = {}
        self.known: dict[str, list[Mutant]] = {}

    def files(self) -> list[str]:
        found = [str(path.relative_to(self.root)) for room in self.rooms
                 for path in sorted((self.root / room).rglob("*.c"))]
        return [file for file in found if not LEFT_OUT.search(file)]

    def mutants(self, file: str) -> list[Mutant]:
        if file not in self.known:
            self.texts[file] = (self.root / file).read_text()
            self.known[file] = c_mutants(file, self.texts[file], self.status)
        return self.known[file]

    def prepare(self) -> None:
        self.lock = locked(self.folder)
        self._copy_tree()
        build(self.copy, [f"{BUILT}/{program}" for program in self.programs])
        self.suites = Suites(self.copy, BUILT, self.folder / "suites.json", self.environment)
        every = [name for program in self.programs for name in self.suites.of(program)]
        self.names = [name for name in every if self.suites.alone_s(name) is not None]
        self.tests_stamp = digest("".join(self.suites.stamp(name.split()[1])
                                          for name in self.names).encode())

    def _copy_tree(self) -> None:
        """Makes the copy what the tree is. It undoes an interrupted mutant."""
        listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"],
                                cwd=self.root, capture_output=True, text=True, check=True).stdout
        files = [file for file in listed.split("\0") if (self.root / file).is_file()]
        for file in files:
            here, there = self.root / file, self.copy / file
            if not there.exists() or here.read_bytes() != there.read_bytes():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(here, there)
        for path in [path for room in self.rooms for path in (self.copy / room).rglob("*.[ch]")]:
            if not (self.root / path.relative_to(self.copy)).exists():
                path.unlink()
        if (self.copy / "configure.py").exists():
            config = self.root / "build/config.ninja"
            text = config.read_text() if config.exists() else ""
            compiler = re.search(r"^cc = (.*)$", text, re.M)
            subprocess.run(["./configure.py", "--cc", compiler[1] if compiler else "gcc"],
                           cwd=self.copy, check=True, stdout=subprocess.DEVNULL)

    def close(self) -> None:
        self.lock.close()

    def stamps(self, mutant: Mutant) -> tuple[str, str]:
        return digest(self.texts[mutant.file].encode()), self.tests_stamp

    def make(self, mutant: Mutant) -> Iterator[Made]:
        text, place = self.texts[mutant.file], self.copy / mutant.file
        if place.read_text() != text:
            raise MutateError(f"{mutant.file} was edited before the copy of it was made")
        before = self._contents()
        place.write_text(mutant.apply(text))
        try:
            done = ninja(self.copy, [f"{BUILT}/{program}" for program in self.programs])
            changed = [program for program, data in self._contents().items()
                       if data != before[program]]
            if done.returncode != 0:
                yield Made("", refused="the compiler or the linker")
            elif not changed:
                yield Made("")
            else:
                yield Made("", killers=(
                    Killer(name, lambda name=name: self.suites.ask(BUILT, name))
                    for name in self._in_order(mutant.file, changed)))
        finally:
            place.write_text(text)

    def _contents(self) -> dict[str, str]:
        """What is built for the tests to run, without the objects."""
        return {path.name: digest(path.read_bytes()) for path in (self.copy / BUILT).iterdir()
                if path.is_file() and path.suffix not in (".a", ".o")}

    def _in_order(self, file: str, changed: list[str]) -> list[str]:
        """The suites of the programs that changed; of all, if a library changed."""
        of_all = not set(changed) <= set(self.programs)
        names = [name for name in self.names if of_all or name.split()[0] in changed]
        return sorted(names, key=lambda name: (
            self.suites.near(name.split()[1], file), self.suites.alone_s(name)))
