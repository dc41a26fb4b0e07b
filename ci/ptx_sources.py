#!/usr/bin/env python3
"""Checks that the PTX under fixtures/ptx was made from the sources that are there, without nvcc.

    ci/ptx_sources.py            names each file whose source, or whose text, changed since
    ci/ptx_sources.py --write [NAME...]    records all files, or those of these kernels; ci/ptx
                                 --write calls this

fixtures/ptx/sources.sha256 has a line for each file: the checksum of its source, with the headers
that it includes and without comments, the checksum of the PTX, and the path. Checksums cannot show
that nvcc made the one from the other; ci/ptx --compile does. Exit code: 1 if anything is stale.
"""

import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = "fixtures/ptx/sources.sha256"
COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
TARGET = re.compile(r"^// Target: (compute_\d+a?)$", re.MULTILINE)
# These have debugging information, in which comments and the compiling machine's headers count.
DEBUGGED = ("_debug.ptx", "_lines.ptx")


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


def checksum(source: pathlib.Path) -> str:
    digest = hashlib.sha256()
    for path in sources_of(source):
        text = path.read_text(encoding="utf-8")
        digest.update(f"{path.name}\n{TARGET.findall(text)}\n{words(text)}\n".encode())
    return digest.hexdigest()


def pairs(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """Each PTX file that has a source, and the source."""
    made = {f"fixtures/ptx/kernels/{source.stem}.ptx": source
            for source in root.glob("kernels/*/*.cu")}
    for source in (root / "runtime/soft/corpus").glob("*.cu"):
        names = {path.name for path in (root / "fixtures/ptx/corpus").glob(f"{source.stem}_*.ptx")
                 if re.fullmatch(r"\d+(_debug|_lines)?", path.stem[len(source.stem) + 1:])}
        only = TARGET.findall(source.read_text(encoding="utf-8"))
        targets = [word.strip("compute_a") for word in only] or ["75", "80", "90"]
        names |= {f"{source.stem}_{target}.ptx" for target in targets}
        made |= {f"fixtures/ptx/corpus/{name}": source for name in names}
    return made


def present(root: pathlib.Path) -> dict[str, tuple[str, str]]:
    found = {}
    for path, source in sorted(pairs(root).items()):
        file = root / path
        text = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "missing"
        found[path] = (checksum(source), text)
    return found


def recorded(root: pathlib.Path) -> dict[str, tuple[str, str]]:
    file = root / RECORD
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {path: (source, text) for source, text, path in (line.split() for line in lines)}


def findings(root: pathlib.Path = ROOT) -> list[str]:
    now, then = present(root), recorded(root)
    found = [f"{path}: is recorded in {RECORD} and has no source" for path in then.keys() - now]
    for path, (source, text) in now.items():
        if text == "missing":
            found.append(f"{path}: is missing: ci/ptx --write")
        elif path not in then:
            found.append(f"{path}: is not recorded: ci/ptx --write")
        elif then[path][0] != source and not path.endswith(DEBUGGED):
            found.append(f"{path}: is stale, its source changed: ci/ptx --write")
        elif then[path][1] != text:
            found.append(f"{path}: was changed by something other than ci/ptx --write")
    return sorted(found)


def write(root: pathlib.Path, names: list[str]) -> None:
    now, then = present(root), recorded(root)
    kept = {path: now[path] if not names or pathlib.Path(path).stem in names else then[path]
            for path in now if not names or path in then or pathlib.Path(path).stem in names}
    lines = [f"{source} {text} {path}\n" for path, (source, text) in kept.items()]
    (root / RECORD).write_text("".join(lines), encoding="utf-8")


def main() -> int:
    if sys.argv[1:2] == ["--write"]:
        write(ROOT, sys.argv[2:])
        return 0
    if sys.argv[1:]:
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    found = findings()
    print("\n".join(found) if found else f"{len(recorded(ROOT))} files are as recorded")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
