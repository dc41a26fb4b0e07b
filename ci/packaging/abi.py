"""The binary interface of libtollens.so.1: written down with a release, and compared with the last.

    ci/package abi [FOLDER]

FOLDER is that of the last release, default $TOLLENS_LAST_RELEASE. Needs libabigail (abigail-tools).

Exit code: 0 nothing that programs rely on is gone or differs, or there is no release to compare
with; 1 something is; 2 it could not be compared.
"""

import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from contents import BUILD, ROOT, version

HEADERS = ROOT / "runtime/include/tollens"
# abidiff's answer is made of bits: it failed, it was called wrongly, something differs, and what
# differs breaks programs.
FAILED, DIFFERS, BREAKS = 1 | 2, 4, 8


def can() -> bool:
    return shutil.which("abidw") is not None and shutil.which("abidiff") is not None


def describe(library: pathlib.Path, headers: pathlib.Path = HEADERS) -> bytes:
    """The interface as libabigail's XML. The library has what debuggers read."""
    return subprocess.run(["abidw", "--no-comp-dir-path", "--no-corpus-path", "--no-show-locs",
                           "--headers-dir", str(headers), str(library)], check=True,
                          stdout=subprocess.PIPE).stdout


def compare(before: bytes, library: pathlib.Path, headers: pathlib.Path = HEADERS) -> \
        tuple[int, str]:
    """abidiff's bits, and what it says."""
    with tempfile.NamedTemporaryFile(suffix=".abi") as file:
        file.write(before)
        file.flush()
        done = subprocess.run(["abidiff", "--headers-dir2", str(headers), file.name, str(library)],
                              check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def name_of(number: str) -> str:
    return f"tollens-{number}-{os.uname().machine}.abi.xz"


def main() -> int:
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("TOLLENS_LAST_RELEASE", "")
    if not given:
        print("not run here: the binary interface: there is no release to compare with; name its "
              "folder")
        return 0
    found = sorted(pathlib.Path(given).glob("*.abi.xz"))
    library = BUILD / "libtollens.so"
    if not can() or len(found) != 1 or not library.exists():
        print("package: libabigail is not installed: apt-get install abigail-tools" if not can()
              else f"package: {given} must have one file *.abi.xz, of ci/release"
              if len(found) != 1 else f"package: {library} is not there: ninja libs",
              file=sys.stderr)
        return 2
    bits, said = compare(lzma.decompress(found[0].read_bytes()), library)
    print(said.strip())
    if bits & FAILED:
        return 2
    what = "BREAKS PROGRAMS" if bits & BREAKS else "grew" if bits & DIFFERS else "the same"
    print(f"summary: libtollens.so.1 of {version()} against {found[0].name}: {what}")
    return 1 if bits & BREAKS else 0


if __name__ == "__main__":
    sys.exit(main())
