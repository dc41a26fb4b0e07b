"""Mutants of C: one at a time is written into a copy of the tree, built and tested there.

A mutant costs a compilation, linking, and suites of tests until one fails: those of the file's own
tests first, then those of its folder, then the others, the quick ones first.
"""

import pathlib
import re
import shutil
from collections.abc import Iterator

from mutation.judge import Bench, Made
from mutation.lexer import Source
from mutation.operators import Edit, Mutant, c_edits, statuses
from mutation.running import MutateError, Suites, build, digest, ninja
from tidying.budgets import tree

STATUSES = "runtime/include/tollens/status.def"
LEFT_OUT = re.compile(r"_(test|scene|stage|maker|stub|stand_in)\.c$"
                      r"|/(test|bench|examples|fuzz|sweep|table|tools|corpus|refused|tune|ladder)/")
BUILT = "build/mutate"  # the folder of the build, in the copy


class CBench(Bench):
    record, tried = "survivors.toml", BUILT

    def __init__(self, root: pathlib.Path, rooms: list[str], programs: list[str],
                 environment: dict[str, str]) -> None:
        super().__init__(root, root / BUILT, environment)
        self.rooms, self.programs, self.copy = rooms, programs, self.folder / "tree"
        self.targets = [f"{BUILT}/{program}" for program in programs]
        status = root / STATUSES
        self.status = statuses(status.read_text() if status.exists() else "")

    def files(self) -> list[str]:
        found = [str(path.relative_to(self.root)) for room in self.rooms
                 for path in sorted((self.root / room).rglob("*.c"))]
        return [file for file in found if not LEFT_OUT.search(file)]

    def edits(self, source: Source) -> Iterator[Edit]:
        return c_edits(source, self.status)

    def prepare(self) -> None:
        self._copy_tree()
        build(self.copy, self.targets)
        self.suites = Suites(self.copy, BUILT, self.folder / "suites.json", self.environment)
        every = [name for program in self.programs for name in self.suites.of(program)]
        self.names = [name for name in every if self.suites.alone_s(name) is not None]

    def _copy_tree(self) -> None:
        """Makes the copy what the tree is. It undoes an interrupted mutant."""
        files = tree(self.root)
        config = self.root / "build/config.ninja"  # by which ninja configures the copy
        for file, here in {**files, **({"build/config.ninja": config} if config.exists()
                                       else {})}.items():
            there = self.copy / file
            if not there.exists() or here.read_bytes() != there.read_bytes():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(here, there)
        for path in [path for room in self.rooms for path in (self.copy / room).rglob("*.[ch]")]:
            if str(path.relative_to(self.copy)) not in files:
                path.unlink()

    def make(self, mutant: Mutant) -> Iterator[Made]:
        text, place = self.texts[mutant.file], self.copy / mutant.file
        if place.read_text() != text:
            raise MutateError(f"{mutant.file} was edited before the copy of it was made")
        before = self._contents()
        place.write_text(mutant.apply(text))
        try:
            done = ninja(self.copy, self.targets)
            changed = [program for program, data in self._contents().items()
                       if data != before[program]]
            if done.returncode != 0:
                yield Made("", refused="the compiler or the linker")
            else:
                yield Made("", names=self._in_order(mutant.file, changed) if changed else None)
        finally:
            place.write_text(text)

    def _contents(self) -> dict[str, str]:
        """What is built for the tests to run, without the objects."""
        return {path.name: digest(path.read_bytes()) for path in (self.copy / BUILT).iterdir()
                if path.is_file() and path.suffix not in (".a", ".o")}

    def _in_order(self, file: str, changed: list[str]) -> Iterator[str]:
        """The suites of the programs that changed; of all, if a library changed."""
        of_all = not set(changed) <= set(self.programs)
        names = [name for name in self.names if of_all or name.split()[0] in changed]
        yield from sorted(names, key=lambda name: (
            self.suites.near(name.split()[1], file), self.suites.alone_s(name)))
