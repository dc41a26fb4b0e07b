#!/usr/bin/env python3
"""Floors as law: which folder of a room may include which. ci/rooms.py has the tables.

    ci/floors.py            prints a line for each finding; exit code 1 if there is any
    ci/floors.py --write    writes the floor tables in the READMEs

A file includes files of its own folder and of lower floors; folders of one floor do not include
each other. Two files of a room never include each other, directly or through others: a .c file and
its private header count as one file. No two structs of a room share a tag. What a room may include
of other rooms is listed with it. ci/tidy.py runs these checks with its own.
"""

import graphlib
import pathlib
import posixpath
import re
import sys
from collections.abc import Iterator

from rooms import PUBLIC, ROOMS, Room
from tidying.budgets import tree

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import configure  # noqa: E402  (where the compiler looks for includes)

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
STRUCT = re.compile(r"^(?:typedef )?(?:struct|union) (\w+) \{", re.MULTILINE)
BEGIN, END = "<!-- floors: written by ci/floors.py -->", "<!-- end of floors -->"


MADE = {"claims.def", "beyond.def"}  # what the build writes


# ---- files --------------------------------------------------------------------------------------

def read_tree() -> dict[str, str]:
    """The text of every C file, by path."""
    return {name: path.read_text(encoding="utf-8") for name, path in sorted(tree().items())
            if name.endswith((".c", ".h", ".def", ".cuh")) and room_of(name) is not None}


def stem(path: str) -> str:
    return pathlib.PurePosixPath(path).stem


def is_test(path: str) -> bool:
    return stem(path).endswith(("_test", "_scene")) or "/test/" in path


def room_of(path: str) -> Room | None:
    """The room with the longest root."""
    held = [room for room in ROOMS if path.startswith(room.root + "/")]
    return max(held, key=lambda room: len(room.root), default=None)


def include_paths(path: str) -> list[str]:
    """Where the compiler looks for an include, in its order: the flags are configure.py's."""
    flags = next(flags for folder, (_, flags) in configure.ROOMS.items() if path.startswith(folder))
    return [f"{pathlib.PurePosixPath(path).parent}/",
            *(f"{flag.removeprefix('-I')}/" for flag in flags.split())]


class Plan:
    """A room with its files: where each is, and what it includes."""

    def __init__(self, room: Room, texts: dict[str, str]) -> None:
        self.room = room
        self.texts = {path: text for path, text in texts.items() if room_of(path) == room}
        self.everything = texts
        self.sources = {stem(path): self.folder_of(path) for path in self.texts
                        if path.endswith(".c") and not is_test(path)}
        self.floor = {folder: number for number, (folders, _) in enumerate(room.floors)
                      for folder in folders.split()}

    def folder_of(self, path: str) -> str:
        return str(pathlib.PurePosixPath(path).parent.relative_to(self.room.root))

    def floor_of(self, path: str) -> int | None:
        """None: it is on no floor. A public header is on that of the source which it declares."""
        if self.is_public(path):
            return self.floor.get(self.sources.get(stem(path), ""), 0)
        return self.floor.get(self.folder_of(path))

    def is_public(self, path: str) -> bool:
        return bool(self.room.public) and path.startswith(self.room.public)

    def resolve(self, path: str, name: str) -> str | None:
        for place in [*include_paths(path), PUBLIC]:
            found = posixpath.normpath(place + name)
            if found in self.everything:
                return found
        return None

    def includes(self) -> Iterator[tuple[str, int, str, str | None]]:
        """Includer, line, name as written, included path."""
        for path, text in self.texts.items():
            for found in INCLUDE.finditer(text):
                line = text.count("\n", 0, found.start(1)) + 1
                yield path, line, found.group(1), self.resolve(path, found.group(1))

    def is_above(self, path: str) -> bool:
        """Programs, tests, and public headers that only gather others."""
        return (is_test(path) or self.folder_of(path) in self.room.above
                or (self.is_public(path) and stem(path) not in self.sources))

    # ---- what is wrong ---------------------------------------------------------------------

    def climbs(self) -> Iterator[str]:
        for path, line, name, other in self.includes():
            here = f"{path}:{line}: "
            if other is None:
                if name not in MADE:
                    yield f'{here}"{name}" is not found on the include paths of {self.room.root}'
                continue
            if room_of(other) != self.room and not other.startswith(self.room.below):
                yield f"{here}{self.room.root} may not include {other}"
            elif not self.is_above(path) and (room_of(other) == self.room or self.is_public(other)):
                yield from self.climb(here, path, other)

    def climb(self, here: str, path: str, other: str) -> Iterator[str]:
        own, its = self.floor_of(path), self.floor_of(other)
        for floor, of in ((own, path), (its, other)):
            if floor is None:
                yield f"{here}the folder of {of} is on no floor: see ci/rooms.py"
                return
        is_same = not self.is_public(other) and self.folder_of(path) == self.folder_of(other)
        if not is_same and its >= own and not (self.is_public(other) and its == own):
            yield f"{here}{path} is on floor {own} and may not include {other} on floor {its}"

    def node(self, path: str) -> str:
        """A .c file and its private header are one; a public header stands for itself."""
        return f"{stem(path)}.h" if self.is_public(path) else stem(path)

    def circles(self) -> Iterator[str]:
        """One of the circles; the others are found when it is gone."""
        edges: dict[str, set[str]] = {}
        for path, _, _, other in self.includes():
            if other is not None and room_of(other) == self.room and not self.is_above(path):
                own = edges.setdefault(self.node(path), set())
                own |= {self.node(other)} - {self.node(path)}
        try:
            graphlib.TopologicalSorter(edges).prepare()
        except graphlib.CycleError as error:
            circle = ", ".join(sorted(set(error.args[1])))
            yield f"{self.room.root}: these include each other: {circle}"

    def shared_tags(self) -> Iterator[str]:
        seen: dict[str, str] = {}
        for path, text in self.texts.items():
            if self.is_above(path):
                continue
            for found in STRUCT.finditer(text):
                other = seen.setdefault(found.group(1), path)
                if other != path:
                    yield f"{path}: {other} has a struct {found.group(1)} already"

    def findings(self) -> Iterator[str]:
        yield from self.climbs()
        yield from self.circles()
        yield from self.shared_tags()


# ---- the tables in the READMEs -----------------------------------------------------------------

def table(room: Room) -> str:
    rows = [f"| {number} | {' '.join(f'`{folder}`' for folder in folders.split())} | {what} |"
            for number, (folders, what) in reversed(list(enumerate(room.floors)))]
    return "\n".join([BEGIN, "| floor | folders | what they hold |", "|---|---|---|", *rows, END])


def with_table(room: Room, text: str) -> str:
    """A README with the table as it must be."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"{room.readme} has no place for its floors: {BEGIN} and {END}")
    before, rest = text.split(BEGIN, 1)
    return before + table(room) + rest.split(END, 1)[1]


def stale_tables(texts: dict[str, str]) -> Iterator[str]:
    for room in ROOMS:
        if not room.readme:
            continue
        try:
            if with_table(room, texts[room.readme]) != texts[room.readme]:
                yield f"{room.readme}: its table of floors is stale: ci/floors.py --write"
        except ValueError as error:
            yield str(error)


def check(texts: dict[str, str], readmes: dict[str, str]) -> list[str]:
    """All findings, a line each."""
    return [*(line for room in ROOMS for line in Plan(room, texts).findings()),
            *stale_tables(readmes)]


def read_readmes() -> dict[str, str]:
    return {room.readme: (ROOT / room.readme).read_text(encoding="utf-8")
            for room in ROOMS if room.readme}


def main() -> int:
    if sys.argv[1:] == ["--write"]:
        for room in ROOMS:
            if room.readme:
                path = ROOT / room.readme
                path.write_text(with_table(room, path.read_text(encoding="utf-8")))
        return 0
    if sys.argv[1:]:
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    findings = check(read_tree(), read_readmes())
    print("\n".join(findings) if findings else "floors: nothing found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
