#!/usr/bin/env python3
"""Compares the names that the soft device and its CUDA runtimes export with those of a toolkit.

    ci/tidying/toolkit_names.py           with the toolkit that configure.py found, if any
    ci/tidying/toolkit_names.py FILE      with this cuda.h, libcudart.so, libcublas.so or
                                          libcublasLt.so, of which the names in headers count

A line for each name that the toolkit has and ours have not. Names that the headers do not have are
of the soft device's own versions of CUDA, and are no finding. Exit code: 0 nothing was found, 1
something was, 2 the file cannot be read.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
DRIVER_LISTS, RUNTIME_LISTS = ROOT / "runtime/soft/base", ROOT / "runtime/soft/cudart"
SUFFIX = {"NONE": [""], "PTDS": ["", "_ptds"], "PTSZ": ["", "_ptsz"]}
FN = re.compile(r"^SOFT_FN\(\s*(\w+),\s*\d+,\s*\w+,\s*(\w+),", re.MULTILINE)
NAME = re.compile(r"^SOFT_NAME\((\w+), \d+, (\w+), (\w*)\)", re.MULTILINE)
DECLARED = re.compile(r"\bCUDAAPI\s+(cu[A-Z]\w*)\s*\(")
RENAMED = re.compile(r"^\s*#\s*define\s+cu[A-Z]\w*\s+(cu[A-Z]\w*)\s*$", re.MULTILINE)
PER_THREAD = re.compile(r"__CUDA_API_(PTDS|PTSZ)\((cu\w+)\)")
HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h")
# Declared for the compiler alone: libcuda's own stub does not export it; and for Windows.
NOT_EXPORTED = {"cuGetProcAddress_v2_ptsz", "cuWGLGetDevice"}
ROW = re.compile(r"^CUDART_(?:FN|AS|NAME)\((\w+), (\w+), (\w+)[,)]", re.MULTILINE)
# Written out: what nvcc's code calls, and what does not return an error or has its own layout.
SPELLED = re.compile(r"^CUDART_VISIBLE [^;{]*?\b(\w+)\(", re.MULTILINE)
EDITIONS = {12: ("BOTH", "OLD"), 13: ("BOTH", "NEW")}
PROPERTIES = {12: "cudaGetDeviceProperties_v2", 13: "cudaGetDeviceProperties"}


def exported_by_driver() -> set[str]:
    rows = []
    for path in sorted(DRIVER_LISTS.glob("functions*.def")):
        text = path.read_text(encoding="utf-8")
        rows += FN.findall(text)
        rows += [(thread, base + suffix) for thread, base, suffix in NAME.findall(text)]
    return {name + end for thread, name in rows for end in SUFFIX[thread]}


def exported_by_runtime(major: int) -> set[str]:
    names = {PROPERTIES[major]}
    for path in sorted(RUNTIME_LISTS.glob("*.def")):
        for versions, thread, name in ROW.findall(path.read_text(encoding="utf-8")):
            if versions in EDITIONS[major]:
                names |= {name + suffix for suffix in SUFFIX[thread]}
    for path in sorted(RUNTIME_LISTS.rglob("*.c")):
        names |= set(SPELLED.findall(path.read_text(encoding="utf-8")))
    return names


def declared(header: str) -> set[str]:
    """All names of the driver that a header declares, renames to, or has a per-thread form of."""
    names = {*DECLARED.findall(header), *RENAMED.findall(header)}
    for kind, name in PER_THREAD.findall(header):
        names |= {name, f"{name}_{kind.lower()}"}
    return names - NOT_EXPORTED


def names_of(path: pathlib.Path) -> tuple[set[str], set[str], str]:
    """The names of a file of a toolkit, ours, and where a line for each is to be added."""
    if path.suffix == ".h":
        names = declared(path.read_text(encoding="utf-8"))
        if len(names) < 100 and path.name not in HEADERS[1:]:
            raise ValueError(f"it declares {len(names)} functions, so it is not cuda.h")
        return names, exported_by_driver(), "functions.def or functions_other.def"
    rows = exported_by(path)
    library, major = (rows[0][1], int(rows[0][2])) if rows else ("", 0)
    ours = BUILD / f"{library}.so.{major}"
    if library.startswith("libcublas") and ours.exists():
        headers = (path.parent.parent / "include").glob("cublas*.h")
        words = {word for header in headers for word in re.findall(r"\w+", header.read_text())}
        return words & {row[0] for row in rows}, {row[0] for row in exported_by(ours)}, str(ours)
    if library != "libcudart" or major not in EDITIONS:
        raise ValueError("it is not a libcudart.so of CUDA 12 or 13")
    return {row[0] for row in rows}, exported_by_runtime(major), "the lists of runtime/soft/cudart"


def exported_by(library: pathlib.Path) -> list[tuple[str, str, str]]:
    """Each name, with the library's and its major version."""
    text = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)],
                          capture_output=True, text=True, check=True).stdout
    return re.findall(r" T (\w+)@@(lib\w+)\.so\.(\d+)", text)


def found_files() -> list[pathlib.Path]:
    """The headers that configure.py found, and the runtime of their toolkit."""
    config = ROOT / "build/config.ninja"
    text = config.read_text(encoding="utf-8") if config.exists() else ""
    found = re.search(r"-DTOL_HAS_CUDA_H -isystem (\S+)", text)
    if found is None:
        return []
    headers = pathlib.Path(found[1])
    has = (headers.parent / "lib64/libcudart.so").exists()
    names = ["libcudart.so", *(path.stem for path in BUILD.glob("libcublas*.so.13"))]
    libraries = [headers.parent / ("lib64" if has else "lib") / name for name in names]
    return [path for path in (*map(headers.joinpath, HEADERS), *libraries) if path.exists()]


def compare(path: pathlib.Path) -> int:
    """How many names are missing."""
    names, ours, place = names_of(path)
    missing = sorted(names - ours)
    for name in missing:
        print(f"{name} is in {path.name} and not in {place}")
    print(f"summary: {len(names)} names of {path.name}, {len(missing)} missing")
    return len(missing)


def main() -> int:
    if len(sys.argv) > 2 or sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__)
        return 2 if len(sys.argv) > 2 else 0
    paths = [pathlib.Path(word) for word in sys.argv[1:]] or found_files()
    if not paths:
        print("summary: no toolkit here: nothing to compare with")
    try:
        return 1 if sum(map(compare, paths)) else 0
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"toolkit_names: {', '.join(map(str, paths))}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
