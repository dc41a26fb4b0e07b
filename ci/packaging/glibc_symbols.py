"""Whether a glibc has all that programs and libraries ask it for, where that glibc cannot be run.

    python3 ci/packaging/glibc_symbols.py FOLDER GLIBC

FOLDER holds the programs and libraries, and what they bring in lib/; GLIBC the libraries of a
glibc, or libraries that have its names and versions and no code, as a linker takes them. The
compiler zig, which is on PyPI as ziglang, makes such of any version: `python3 -m ziglang cc
-target x86_64-linux-gnu.2.28 -o program program.c -lm -lpthread -ldl -lrt` leaves them in its
cache.

Asked is what the loader asks: is each library there, does it know the versions, and is there a
function of that name and version (or, where none is asked for, of any). Names the files that lack
something. Exit code: 0 none does, 1 some do, 2 there is nothing to compare.
"""

import pathlib
import re
import sys

import target
from contents import output

# A row of `readelf --dyn-syms`: where it is defined or UND, and name, @ or @@ and version.
SYMBOL = re.compile(r"^ *\d+: [0-9a-f]+ +\S+ +\S+ +(\S+) +\S+ +(?:\[.*?\] +)?(\S+) +"
                    r"([^\s@]+)(?:@{1,2}(\S+))?", re.MULTILINE)
NEEDED = re.compile(r"\(NEEDED\).*\[(.*)\]")
FILES = re.compile(r"File: (\S+)|Name: (\S+) ")
# What zig calls the loader.
LOADER = "libld.so.2"
# Not compared: the compiler's, which every system with programs has in a version of its own, the
# driver's, and what zig leaves out: libanl, which has had these functions since glibc 2.2.3.
NOT_COMPARED = re.compile(r"lib(gcc_s|stdc\+\+|cuda|anl)\.so")
OF_ANL = {"gai_cancel", "gai_error", "gai_suspend", "getaddrinfo_a"}


class File:
    """What one file has and asks for."""

    def __init__(self, path: pathlib.Path) -> None:
        self.name = path.name
        readelf = target.tool("readelf")
        self.needed = NEEDED.findall(output(readelf, "-dW", path))
        self.has: set[tuple[str, str]] = set()
        self.asks: set[tuple[str, str]] = set()
        for binding, where, name, version in SYMBOL.findall(output(readelf, "--dyn-syms", "-W",
                                                                   path)):
            if where != "UND":
                self.has.add((name, version))
            elif binding != "WEAK":
                self.asks.add((name, version))
        self.names = {name for name, _ in self.has}
        self.versions = self.versions_asked(output(readelf, "-VW", path))

    @staticmethod
    def versions_asked(text: str) -> set[tuple[str, str]]:
        """Pairs of library and version, of those that must be there."""
        asked, library = set(), ""
        for file, version in FILES.findall(text.partition("Version needs section")[2]):
            if file:
                library = file
            else:
                asked.add((library, version))
        return asked


def elf_files(folder: pathlib.Path) -> list[pathlib.Path]:
    return [path for path in sorted(folder.iterdir())
            if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def lacks(file: File, libraries: dict[str, File], beside: set[str]) -> list[str]:
    """What a file asks for in vain. beside: names of the others, which a plugin takes from the
    program that loads it."""
    missing, closure, left = [], [], list(file.needed)
    while left:
        name = left.pop()
        if name in libraries and libraries[name] not in closure:
            closure.append(libraries[name])
            left += libraries[name].needed
        elif name not in libraries and not NOT_COMPARED.match(name):
            missing.append(name)
    for library, version in sorted(file.versions):
        if library in libraries and version not in {known for _, known in libraries[library].has}:
            missing.append(f"{version} of {library}")
    for name, version in sorted(ask for ask in file.asks if ask[0] not in OF_ANL):
        if not version and not any(name in one.names for one in closure) and name not in beside:
            missing.append(name)
        elif version.startswith("GLIBC_") and \
                not any((name, version) in one.has for one in closure):
            missing.append(f"{name}@{version}")
    return missing


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    folder, glibc = map(pathlib.Path, sys.argv[1:])
    theirs = {path.name: File(path) for path in elf_files(glibc)}
    if LOADER in theirs:
        theirs["ld-linux-x86-64.so.2"] = theirs["ld-linux-aarch64.so.1"] = theirs[LOADER]
    ours = [path for place in (folder, folder / "lib") if place.is_dir()
            for path in elf_files(place)]
    if "libc.so.6" not in theirs or not ours:
        print("glibc_symbols: there is no libc.so.6, or nothing that needs one", file=sys.stderr)
        return 2
    files = [File(path) for path in ours]
    libraries = {**{file.name: file for file in files}, **theirs}
    beside = {name for file in files for name in file.names}
    wrong = 0
    for file in files:
        missing = lacks(file, libraries, beside)
        wrong += bool(missing)
        if missing:
            print(f"{file.name} lacks {', '.join(missing)}")
    asked = {ask for file in files for ask in file.asks if ask[1].startswith("GLIBC_")}
    print(f"summary: {len(files) - wrong} of {len(files)} files find all; they ask for "
          f"{len(asked)} functions by version")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
