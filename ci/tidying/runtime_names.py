#!/usr/bin/env python3
"""Compares the names that the CUDA runtime stand-ins export with those of CUDA's own.

    ci/tidying/runtime_names.py              with the toolkit that configure.py found, if any
    ci/tidying/runtime_names.py LIBRARY      with this libcudart.so

The lists in runtime/soft/cudart say which names both libraries have. A line for
each name that CUDA's library has and ours has not. Exit code: 0 nothing was found, 1 something
was, 2 the library cannot be read.
"""

import pathlib
import re
import subprocess
import sys

import compared_names
from compared_names import ROOT, SUFFIX, Names

LISTS = ROOT / "runtime/soft/cudart"
ROW = re.compile(r"^CUDART_(?:FN|AS|NAME)\((\w+), (\w+), (\w+)[,)]", re.MULTILINE)
# Written out: what nvcc's code calls, and what does not return an error or has its own layout.
SPELLED = re.compile(r"^CUDART_VISIBLE [^;{]*?\b(\w+)\(", re.MULTILINE)
EDITIONS = {12: ("BOTH", "OLD"), 13: ("BOTH", "NEW")}
PROPERTIES = {12: "cudaGetDeviceProperties_v2", 13: "cudaGetDeviceProperties"}


def exported(major: int) -> set[str]:
    names = {PROPERTIES[major]}
    for path in sorted(LISTS.glob("*.def")):
        for versions, thread, name in ROW.findall(path.read_text(encoding="utf-8")):
            if versions in EDITIONS[major]:
                names |= {name + suffix for suffix in SUFFIX[thread]}
    for path in sorted(LISTS.rglob("*.c")):
        names |= set(SPELLED.findall(path.read_text(encoding="utf-8")))
    return names


def found_library() -> pathlib.Path | None:
    """The runtime of the toolkit whose cuda.h configure.py found."""
    folder = compared_names.toolkit_headers()
    places = [folder.parent / name / "libcudart.so" for name in ("lib64", "lib")] if folder else []
    return next((place for place in places if place.exists()), None)


def names_of(library: pathlib.Path) -> tuple[int, set[str]]:
    """The major version, by the tag of the names, and the names."""
    text = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)],
                          capture_output=True, text=True, check=True).stdout
    rows = re.findall(r" T (\w+)@@libcudart\.so\.(\d+)", text)
    return (int(rows[0][1]) if rows else 0), {name for name, _ in rows}


def read(path: pathlib.Path) -> Names:
    major, names = names_of(path)
    if major not in EDITIONS:
        raise ValueError("it is not a libcudart.so of CUDA 12 or 13")
    return Names(names, exported(major), f"CUDA {major}'s runtime",
                 "the lists of runtime/soft/cudart")


if __name__ == "__main__":
    sys.exit(compared_names.main(__doc__, found_library, "libcudart.so", read))
