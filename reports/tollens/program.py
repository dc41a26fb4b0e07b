"""The program tollens of this package, and the command of that name.

The report, the comparison and the merge of runs are Python and run in this process; every other
command is the program's, which takes the process over, so that signals and exit codes are its own.
"""

import os
import pathlib
import sys
from importlib import metadata
from importlib.util import find_spec

FOLDER = pathlib.Path(__file__).resolve().parent / "program"
OWN = ("report", "compare", "merge")


class Missing(OSError):
    """A file of this package is not there."""


def version() -> str:
    """Of the package; "" where it is not installed."""
    try:
        return metadata.version("tollens")
    except metadata.PackageNotFoundError:
        return ""


def existing(path: pathlib.Path) -> pathlib.Path:
    if not path.exists():
        raise Missing(f"{path} is not there: the package tollens is not installed as a whole")
    return path


def program_path() -> pathlib.Path:
    """The program. Missing: it is not there."""
    return existing(FOLDER / "tollens")


def soft_library_path() -> pathlib.Path:
    """The soft device, a library with the CUDA driver's functions: ctypes.CDLL opens it, and
    $TOLLENS_LIBCUDA names it to programs of the Tollens runtime. Missing: it is not there."""
    return existing(FOLDER / "libtollens-soft.so")


def own_command(words: list[str]) -> int:
    from .reports import __main__ as report  # large, and most commands do not need it
    if find_spec("matplotlib") is None and not {"--no-png", "--help", "-h"} & set(words):
        print("tollens: without matplotlib there are no PNG files: pip install matplotlib "
              "adds it", file=sys.stderr)
        words = [*words, "--no-png"]
    return report.command(words[0], words[1:], "tollens")


def main() -> int:
    """The command. Returns the exit code of a command that is Python's; the program's other
    commands do not return."""
    words = sys.argv[1:]
    if words and words[0] in OWN:
        return own_command(words)
    try:
        program = program_path()
    except Missing as error:
        print(f"tollens: {error}", file=sys.stderr)
        return 2
    os.execv(program, [str(program), *words])
