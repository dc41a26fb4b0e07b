#!/usr/bin/env python3
"""Compares the names that the soft device exports with those that cuda.h declares.

    ci/tidying/driver_names.py           with the cuda.h that configure.py found, if it found one
    ci/tidying/driver_names.py FILE      with this cuda.h

A line for each name that cuda.h has and the soft device does not. Names that cuda.h does not have
are of the soft device's own versions of CUDA, and are no finding. Exit code: 0 nothing was found, 1
something was, 2 the file cannot be read.
"""

import pathlib
import re
import sys

import compared_names
from compared_names import ROOT, SUFFIX, Names

LISTS = ROOT / "runtime/soft/base"
FN = re.compile(r"^SOFT_FN\(\s*(\w+),\s*\d+,\s*\w+,\s*(\w+),", re.MULTILINE)
NAME = re.compile(r"^SOFT_NAME\((\w+), \d+, (\w+), (\w*)\)", re.MULTILINE)
DECLARED = re.compile(r"\bCUDAAPI\s+(cu[A-Z]\w*)\s*\(")
RENAMED = re.compile(r"^\s*#\s*define\s+cu[A-Z]\w*\s+(cu[A-Z]\w*)\s*$", re.MULTILINE)
PER_THREAD = re.compile(r"__CUDA_API_(PTDS|PTSZ)\((cu\w+)\)")
# Declared for the compiler alone: libcuda's own stub does not export it.
NOT_EXPORTED = {"cuGetProcAddress_v2_ptsz"}


def exported() -> set[str]:
    rows = []
    for path in sorted(LISTS.glob("functions*.def")):
        text = path.read_text(encoding="utf-8")
        rows += FN.findall(text)
        rows += [(thread, base + suffix) for thread, base, suffix in NAME.findall(text)]
    return {name + end for thread, name in rows for end in SUFFIX[thread]}


def declared(header: str) -> set[str]:
    """All names of the driver that a header declares, renames to, or has a per-thread form of."""
    names = {*DECLARED.findall(header), *RENAMED.findall(header)}
    for kind, name in PER_THREAD.findall(header):
        names |= {name, f"{name}_{kind.lower()}"}
    return names - NOT_EXPORTED


def found_header() -> pathlib.Path | None:
    folder = compared_names.toolkit_headers()
    return folder / "cuda.h" if folder else None


def read(path: pathlib.Path) -> Names:
    names = declared(path.read_text(encoding="utf-8"))
    if len(names) < 100:
        raise ValueError(f"it declares {len(names)} functions of the driver, so it is not cuda.h")
    return Names(names, exported(), "cuda.h", "functions.def or functions_other.def")


if __name__ == "__main__":
    sys.exit(compared_names.main(__doc__, found_header, "cuda.h", read))
