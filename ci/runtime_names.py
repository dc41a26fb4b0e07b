#!/usr/bin/env python3
"""Compares the names that the CUDA runtime stand-ins export with those of CUDA's own.

    ci/runtime_names.py              with the toolkit that configure.py found; else it says so
    ci/runtime_names.py LIBRARY      with this libcudart.so

The lists in runtime/soft/cudart say which names both libraries have. A line for
each name that CUDA's library has and ours has not. Exit code: 0 nothing was found, 1 something
was, 2 the library cannot be read.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / "runtime/soft/cudart"
ROW = re.compile(r"^CUDART_(?:FN|AS|NAME)\((\w+), (\w+), (\w+)[,)]", re.MULTILINE)
# Written out: what nvcc's code calls, and what does not return an error or has its own layout.
SPELLED = re.compile(r"^CUDART_VISIBLE [^;{]*?\b(\w+)\(", re.MULTILINE)
SUFFIX = {"NONE": [""], "PTDS": ["", "_ptds"], "PTSZ": ["", "_ptsz"]}
EDITIONS = {12: ("BOTH", "OLD"), 13: ("BOTH", "NEW")}
PROPERTIES = {12: "cudaGetDeviceProperties_v2", 13: "cudaGetDeviceProperties"}


def exported(major: int) -> set[str]:
    names = {PROPERTIES[major]}
    for path in sorted(LISTS.glob("*.def")):
        for versions, thread, name in ROW.findall(path.read_text(encoding="utf-8")):
            if versions in EDITIONS[major]:
                names |= {name + suffix for suffix in SUFFIX[thread]}
    for path in sorted(LISTS.glob("*.c")):
        names |= set(SPELLED.findall(path.read_text(encoding="utf-8")))
    return names


def found_library() -> pathlib.Path | None:
    """The runtime of the toolkit whose cuda.h configure.py found."""
    config = ROOT / "build/config.ninja"
    if not config.exists():
        return None
    folder = re.search(r"-DTOL_HAS_CUDA_H -isystem (\S+)", config.read_text(encoding="utf-8"))
    places = [pathlib.Path(folder[1]).parent / name for name in ("lib64", "lib")] if folder else []
    return next((place / "libcudart.so" for place in places
                 if (place / "libcudart.so").exists()), None)


def names_of(library: pathlib.Path) -> tuple[int, set[str]]:
    """The major version, by the tag of the names, and the names."""
    text = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)],
                          capture_output=True, text=True, check=True).stdout
    rows = re.findall(r" T (\w+)@@libcudart\.so\.(\d+)", text)
    return (int(rows[0][1]) if rows else 0), {name for name, _ in rows}


def main() -> int:
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    if len(sys.argv) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else found_library()
    if path is None:
        print("summary: no libcudart.so here: nothing to compare with")
        return 0
    try:
        major, names = names_of(path)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"runtime_names: {path}: {error}", file=sys.stderr)
        return 2
    if major not in EDITIONS:
        print(f"runtime_names: {path} is not a libcudart.so of CUDA 12 or 13", file=sys.stderr)
        return 2
    missing = sorted(names - exported(major))
    for name in missing:
        print(f"{name} is in {path.name} and not in the lists of runtime/soft/cudart")
    print(f"summary: {len(names)} names of CUDA {major}'s runtime, {len(missing)} missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
