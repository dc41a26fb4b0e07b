#!/usr/bin/env python3
"""Checks that the PTX under fixtures/ptx was made from the sources that are there, without nvcc.

    ci/ptx_sources.py            names each file whose source, or whose text, changed since
    ci/ptx_sources.py --write [NAME...]    records all files, or those of these sources; ci/ptx
                                 --write calls this
    ci/ptx_sources.py --text PATH    prints what a kept file holds
    ci/ptx_sources.py --keep PATH TEXT    packs a text into a kept file
    ci/ptx_sources.py --plan --compile|--all|--write [NAME...]    what ci/ptx is to compile, a line
                                 a file: path, version that is written into it or -, target,
                                 source, options of nvcc

fixtures/ptx/sources.sha256 has one line per file: the checksum of its inputs (the source with the
headers that it includes and without comments, the options of nvcc, and the PTX version), the
checksum of the PTX, which names the release of nvcc, and the path. Equal checksums
do not prove that nvcc compiled this source to this PTX. Therefore --plan --compile lists the files
that changed and, each day, another twelfth of the files that did not. Exit code: 1 if anything is
stale.
"""

import datetime
import hashlib
import pathlib
import re
import sys
from typing import NamedTuple

import kernel_image

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = "fixtures/ptx/sources.sha256"
COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# A kernel that needs more than compute_75 says so: "// Target: compute_80". A program of the corpus
# that says so is compiled for that alone.
TARGET = re.compile(r"^// Target: (compute_\d+a?)$", re.MULTILINE)
VERSIONS = {"compute_75": "6.4", "compute_80": "7.0"}  # what a target came with; else 8.0
# A kernel, or a header, that needs a newer version than that says so: "// PTX: 8.1".
VERSION = re.compile(r"^// PTX: (\d+\.\d+)$", re.MULTILINE)
# These have debugging information, in which comments and the compiling machine's headers count.
DEBUGGED = ("_debug.ptx", "_lines.ptx")
CORPUS = re.compile(r"_(?P<target>\d+)(?P<debugged>_debug|_lines)?\.ptx$")
OPTIONS = {None: "-O3", "_debug": "-G", "_lines": "-lineinfo"}
TURNS = 12


class Made(NamedTuple):
    """What a PTX file is made of. An empty version is nvcc's own."""

    source: pathlib.Path
    target: str
    options: str
    version: str


def words(text: str) -> str:
    """The text without comments, each run of white space one space."""
    return " ".join(COMMENT.sub(lambda match: match.group(1) or " ", text).split())


def sources_of(path: pathlib.Path) -> list[pathlib.Path]:
    """A file and what it includes from its own tree, each once."""
    found, left = [], [path]
    while left:
        one = left.pop()
        if one in found or not one.is_file():
            continue
        found.append(one)
        left += [(one.parent / name).resolve()
                 for name in INCLUDE.findall(one.read_text(encoding="utf-8"))]
    return sorted(found)


def checksum(made: Made) -> str:
    digest = hashlib.sha256()
    for path in sources_of(made.source):
        text = path.read_text(encoding="utf-8")
        digest.update(f"{path.name}\n{TARGET.findall(text)}\n{words(text)}\n".encode())
    digest.update(f"{made.options}\n{made.version}\n".encode())
    return digest.hexdigest()


def kernel(source: pathlib.Path) -> Made:
    target = (TARGET.findall(source.read_text(encoding="utf-8")) or ["compute_75"])[0]
    versions = [VERSIONS.get(target, "8.0")]
    for path in sources_of(source):
        versions += VERSION.findall(path.read_text(encoding="utf-8"))
    newest = max(versions, key=lambda version: [int(number) for number in version.split(".")])
    return Made(source, target, f"-arch={target}", newest)


def corpus(root: pathlib.Path, source: pathlib.Path) -> dict[str, Made]:
    """For each target, and with the debugging information that is there."""
    only = TARGET.findall(source.read_text(encoding="utf-8"))
    names = {f"{source.stem}_{target.strip('compute_a')}.ptx"
             for target in only or ["compute_75", "compute_80", "compute_90"]}
    names |= {path.name for path in (root / "fixtures/ptx/corpus").glob(f"{source.stem}_*.ptx")
              if CORPUS.fullmatch(path.name[len(source.stem):])}
    made = {}
    for name in names:
        match = CORPUS.search(name)
        target = only[0] if only else f"compute_{match['target']}"
        options = f"-arch={target} {OPTIONS[match['debugged']]}"
        made[f"fixtures/ptx/corpus/{name}"] = Made(source, target, options, "")
    return made


def all_made(root: pathlib.Path) -> dict[str, Made]:
    """Each PTX file that has a source, and what it is made of."""
    made = {f"fixtures/ptx/kernels/{source.stem}.ptx.xz": kernel(source)
            for source in root.glob("kernels/**/*.cu")}
    for source in (root / "runtime/soft/corpus").glob("*.cu"):
        made |= corpus(root, source)
    return dict(sorted(made.items()))


def keep(file: pathlib.Path, text: bytes) -> None:
    file.write_bytes(kernel_image.packed(text) if file.suffix == ".xz" else text)


def present(root: pathlib.Path) -> dict[str, tuple[str, str]]:
    found = {}
    for path, made in all_made(root).items():
        file = root / path
        found[path] = checksum(made), "missing" if not file.is_file() else (
            hashlib.sha256(kernel_image.kept_text(file)).hexdigest())
    return found


def recorded(root: pathlib.Path) -> dict[str, tuple[str, str]]:
    file = root / RECORD
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {path: (source, text) for source, text, path in (line.split() for line in lines)}


def findings(root: pathlib.Path = ROOT) -> dict[str, str]:
    """What is stale, and why."""
    now, then = present(root), recorded(root)
    found = {path: f"is recorded in {RECORD} and has no source" for path in then.keys() - now}
    for path, (source, text) in now.items():
        if text == "missing":
            found[path] = "is missing: ci/ptx --write"
        elif path not in then:
            found[path] = "is not recorded: ci/ptx --write"
        elif then[path][0] != source and not path.endswith(DEBUGGED):
            found[path] = "is stale, its source changed: ci/ptx --write"
        elif then[path][1] != text:
            found[path] = "was changed by something other than ci/ptx --write"
    return dict(sorted(found.items()))


def write(root: pathlib.Path, names: list[str]) -> None:
    then = recorded(root)
    mine = {path for path, made in all_made(root).items()
            if not names or made.source.stem in names}
    kept = {path: sums if path in mine else then[path] for path, sums in present(root).items()
            if path in mine or path in then}
    lines = [f"{source} {text} {path}\n" for path, (source, text) in kept.items()]
    (root / RECORD).write_text("".join(lines), encoding="utf-8")


def turn(path: str) -> int:
    return int(hashlib.sha256(path.encode()).hexdigest(), 16) % TURNS


def plan(root: pathlib.Path, action: str, names: list[str], day: int) -> list[str]:
    """The files that ci/ptx compiles."""
    made = all_made(root)
    if action == "--write":
        return [path for path, one in made.items() if not names or one.source.stem in names]
    doubted = findings(root)
    return [path for path in made if not path.endswith(DEBUGGED)
            and (action == "--all" or path in doubted or turn(path) == day % TURNS)]


def print_plan(action: str, names: list[str]) -> int:
    made = all_made(ROOT)
    unknown = set(names) - {one.source.stem for one in made.values()}
    if unknown:
        print(f"ci/ptx: there is no source {' '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    day = datetime.datetime.now(datetime.timezone.utc).date().toordinal()
    for path in plan(ROOT, action, names, day):
        one = made[path]
        print(path, one.version or "-", one.target, one.source.relative_to(ROOT), one.options)
    return 0


def main() -> int:
    if sys.argv[1:2] == ["--write"]:
        write(ROOT, sys.argv[2:])
        return 0
    if sys.argv[1:2] == ["--text"] and len(sys.argv) == 3:
        sys.stdout.buffer.write(kernel_image.kept_text(pathlib.Path(sys.argv[2])))
        return 0
    if sys.argv[1:2] == ["--keep"] and len(sys.argv) == 4:
        keep(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]).read_bytes())
        return 0
    if sys.argv[1:2] == ["--plan"] and sys.argv[2:]:
        return print_plan(sys.argv[2], sys.argv[3:])
    if sys.argv[1:]:
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    found = findings()
    for path, what in found.items():
        print(f"{path}: {what}")
    if not found:
        print(f"{len(recorded(ROOT))} files are as recorded")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
