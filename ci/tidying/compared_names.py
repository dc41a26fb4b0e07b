"""What driver_names.py and runtime_names.py share: our names against those of a toolkit."""

import dataclasses
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUFFIX = {"NONE": [""], "PTDS": ["", "_ptds"], "PTSZ": ["", "_ptsz"]}


@dataclasses.dataclass
class Names:
    """What a file of the toolkit has, and what of it we do not."""

    have: set[str]
    ours: set[str]
    whose: str      # "cuda.h"
    missing_in: str  # where a line for each is to be added


def toolkit_headers() -> pathlib.Path | None:
    """The folder of the cuda.h that configure.py found."""
    config = ROOT / "build/config.ninja"
    if not config.exists():
        return None
    folder = re.search(r"-DTOL_HAS_CUDA_H -isystem (\S+)", config.read_text(encoding="utf-8"))
    return pathlib.Path(folder[1]) if folder else None


def main(doc: str, found: Callable[[], pathlib.Path | None], what: str,
         read: Callable[[pathlib.Path], Names]) -> int:
    """Compares with the file in the arguments, or else the one that is found. read raises
    ValueError where the file is another one."""
    name = pathlib.Path(sys.argv[0]).stem
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(doc)
        return 0
    if len(sys.argv) > 2:
        print(doc, file=sys.stderr)
        return 2
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else found()
    if path is None:
        print(f"summary: no {what} here: nothing to compare with")
        return 0
    try:
        names = read(path)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"{name}: {path}: {error}", file=sys.stderr)
        return 2
    missing = sorted(names.have - names.ours)
    for one in missing:
        print(f"{one} is in {path.name} and not in {names.missing_in}")
    print(f"summary: {len(names.have)} names of {names.whose}, {len(missing)} missing")
    return 1 if missing else 0
