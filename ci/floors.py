#!/usr/bin/env python3
"""Floors as law: which folder of a room may include which. ci/rooms.py has the tables.

    ci/floors.py            prints a line for each finding; exit code 1 if there is any
    ci/floors.py --write    writes the floor tables in the READMEs

A file includes files of its own folder and of lower floors; folders of one floor do not include
each other. Two files of a room never include each other, directly or through others: a .c file and
its private header count as one file. No two structs of a room share a tag. What a room may include
of other rooms is listed with it. ci/tidy.py runs these checks with its own.
"""

import pathlib
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

from rooms import ROOMS, Room

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
STRUCT = re.compile(r"^(?:typedef )?(?:struct|union) (\w+) \{", re.MULTILINE)
BEGIN, END = "<!-- floors: written by ci/floors.py -->", "<!-- end of floors -->"


MADE = {"claims.def", "beyond.def"}  # what the build writes


# ---- files --------------------------------------------------------------------------------------

def read_tree() -> dict[str, str]:
    """The text of every C file, by path."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=False)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [
        str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in sorted(set(names))
            if name.endswith((".c", ".h", ".def", ".cuh")) and (ROOT / name).is_file()
            and any(room.holds(name) for room in ROOMS)}


def stem(path: str) -> str:
    return pathlib.PurePosixPath(path).stem


def is_test(path: str) -> bool:
    return stem(path).endswith("_test") or "/test/" in path


class Plan:
    """A room with its files: who stands where, and who includes whom."""

    def __init__(self, room: Room, texts: dict[str, str]) -> None:
        self.room = room
        self.texts = {path: text for path, text in texts.items() if room.holds(path)}
        self.everything = texts
        self.sources = {stem(path): self.folder_of(path) for path in self.texts
                        if path.endswith(".c")}
        self.floor = {folder: number for number, (folders, _) in enumerate(room.floors)
                      for folder in folders.split()}

    def folder_of(self, path: str) -> str:
        return str(pathlib.PurePosixPath(path).parent.relative_to(self.room.root))

    def is_public(self, path: str) -> bool:
        return bool(self.room.public) and self.folder_of(path) == self.room.public

    def home(self, path: str) -> str:
        """The folder that a file counts to: a public header's is that of what it declares."""
        if not self.is_public(path):
            return self.folder_of(path)
        name = stem(path)
        return self.room.homes.get(name) or self.sources.get(name, "include")

    def resolve(self, path: str, name: str) -> str | None:
        places = [str(pathlib.PurePosixPath(path).parent) + "/", *self.room.paths]
        for place in places + ["kernels/", "runtime/include/tollens/"]:
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
        return (is_test(path) or stem(path) in self.room.for_tests
                or self.folder_of(path) in self.room.above)

    # ---- what is wrong ---------------------------------------------------------------------

    def climbs(self) -> Iterator[str]:
        for path, line, name, other in self.includes():
            here = f"{path}:{line}: "
            if other is None:
                if name not in MADE:
                    yield f'{here}"{name}" is not found on the include paths of {self.room.root}'
            elif not self.room.holds(other):
                if not any(pathlib.PurePosixPath(other).match(pattern) or
                           (pattern.endswith("/*") and other.startswith(pattern[:-1]))
                           for pattern in self.room.outside):
                    yield f"{here}{self.room.root} may not include {other}"
            elif not self.is_above(path):
                yield from self.climb(here, path, other)

    def climb(self, here: str, path: str, other: str) -> Iterator[str]:
        own, its = self.home(path), self.home(other)
        for folder, of in ((own, path), (its, other)):
            if folder not in self.floor:
                yield f"{here}{folder} of {of} is on no floor: see ci/floors.py"
                return
        if own != its and self.floor[its] >= self.floor[own]:
            yield (f"{here}{own} is on floor {self.floor[own]} and may not include "
                   f"{other} on floor {self.floor[its]}")

    def node(self, path: str) -> str:
        """A .c file and its private header are one; a public header stands for itself."""
        name = self.room.parts.get(stem(path), stem(path))
        return f"{name}.h" if self.is_public(path) else name

    def circles(self) -> Iterator[str]:
        edges: dict[str, set[str]] = {}
        for path, _, _, other in self.includes():
            if other is not None and self.room.holds(other) and not self.is_above(path):
                edges.setdefault(self.node(path), set()).add(self.node(other))
        for circle in components(edges):
            yield f"{self.room.root}: these include each other: {', '.join(sorted(circle))}"

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


def components(edges: dict[str, set[str]]) -> Iterable[list[str]]:
    """The circles: files that reach each other. Tarjan, SIAM J. Comput. 1 (1972), by a stack."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in sorted(edges):
        work = [(start, iter(sorted(edges[start])))] if start not in index else []
        while work:
            node, others = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for other in others:
                if other not in index:
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    circle = stack[stack.index(node):]
                    del stack[stack.index(node):]
                    if len(circle) > 1:
                        found.append(circle)
    return found


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
