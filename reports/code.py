"""Which code a claim is about, and whether it has changed since a run.

    python3 -m reports.code COMMIT reports/published/RUN

writes RUN/code.json: for each part of the code at that commit a digest. A part is a folder, or the
files of a claim's attack. Tests, what several tests share (_scene), benchmarks, comments and white
space do not count: they change no verdict. reports.pack calls this for the commit that the
evidence names.
"""

import argparse
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "code.json"
ENDINGS = (".c", ".h", ".cu", ".cuh", ".def")
UNDER = ("runtime", "kernels", "hypotheses")
NOT_CODE = re.compile(r"_(test|bench|scene)\.\w+$"
                      r"|/(test|bench|examples|refused|soft|sweep|plugin)/")
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')', re.DOTALL)
INCLUDE = re.compile(r'^#include "((?:attack|measure|accuracy)/\w+)\.h"', re.MULTILINE)

CORE = ("runtime/driver/core", "runtime/driver/objects")
POOL = (*CORE, "runtime/driver/pool", "runtime/driver/vram")
TIMED = (*CORE, "hypotheses/harness/measure")
KERNELS = (*CORE, "kernels", "kernels/choose")
# What a verdict depends on, beside the files of the claim's own attack.
PARTS = {
    "H1": CORE, "H2": CORE, "H3": (*CORE, "runtime/driver/transfer"), "H4": TIMED,
    "H5": (*KERNELS, "kernels/gemm", "kernels/grouped", "kernels/quantised/formats",
           "kernels/quantised/product"),
    "H6": (*KERNELS, "kernels/attention/forward", "kernels/attention/backward",
           "kernels/attention/packed", "kernels/attention/paged", "kernels/attention/e4m3"),
    "H7": (*KERNELS, "kernels/quantised/formats"), "H8": POOL, "H9": POOL, "H10": TIMED,
    "H11": TIMED, "H12": POOL, "H13": CORE,
}

Files = Mapping[str, str]


def counts(path: str) -> bool:
    return (path.startswith(tuple(f"{top}/" for top in UNDER)) and path.endswith(ENDINGS)
            and not NOT_CODE.search(path))


def code_of(text: str) -> str:
    """The text without comments and white space."""
    return "".join(COMMENT.sub(lambda found: found[1] or " ", text).split())


def in_commit(commit: str) -> dict[str, str]:
    """The C and CUDA files of a commit. ValueError: this repository does not have it."""
    done = subprocess.run(["git", "-C", ROOT, "archive", commit, *UNDER], capture_output=True,
                          check=False)
    if done.returncode != 0:
        raise ValueError(f"commit {commit} is not in this repository: "
                         f"{done.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        return {member.name: read.read().decode() for member in tar if counts(member.name)
                if (read := tar.extractfile(member)) is not None}


def in_tree(root: pathlib.Path = ROOT) -> dict[str, str]:
    paths = (path for top in UNDER for path in (root / top).rglob("*"))
    return {name: path.read_text(encoding="utf-8") for path in paths
            if counts(name := path.relative_to(root).as_posix()) and path.is_file()}


def digest(files: Files, names: list[str]) -> str:
    found = hashlib.sha256()
    for name in sorted(names):
        found.update(f"{name}\0{code_of(files[name])}\0".encode())
    return found.hexdigest()[:16] if names else ""


def attack_files(claim: str, files: Files) -> list[str]:
    """The claim's own files, and those of the harness that make its attacks. A claim is a file
    h05_NAME.c, or a folder h05 of several."""
    number = f"h{int(claim[1:]):02}"
    own = [name for name in files
           if re.fullmatch(rf"hypotheses/{number}(_\w+\.c|/\w+\.[ch])", name)]
    stems = {stem for name in own for stem in INCLUDE.findall(files[name])}
    return own + [name for stem in stems for ending in (".c", ".h")
                  for folder in ("hypotheses/harness", "hypotheses")
                  if (name := f"{folder}/{stem}{ending}") in files]


def digests(files: Files) -> dict[str, str]:
    """The digest of each part, by its name: a folder, or the attack of a claim."""
    found = {}
    for folder in sorted({part for parts in PARTS.values() for part in parts}):
        found[folder] = digest(files, [name for name in files
                                       if name.rpartition("/")[0] == folder])
    for claim in PARTS:
        found[f"the attack {claim}"] = digest(files, attack_files(claim, files))
    return found


def changed(claim: str, then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The parts of a claim's code that differ, by name. A part that the run does not know may
    only have had another name then."""
    return [part if part in then else f"{part} (moved or changed)"
            for part in (*PARTS.get(claim, ()), f"the attack {claim}")
            if then.get(part) != now.get(part)]


def read(folder: pathlib.Path) -> dict[str, str]:
    """What code.json of a published run says; empty if there is none. ValueError: it is damaged."""
    path = folder / NAME
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["parts"]
        return {str(part): str(value) for part, value in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what reports.code writes: {error}") from error


def write(commit: str, folder: pathlib.Path) -> None:
    text = json.dumps({"commit": commit, "parts": digests(in_commit(commit))}, indent=2) + "\n"
    (folder / NAME).write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="reports.code", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("folder", type=pathlib.Path, help="of a published run")
    arguments = parser.parse_args()
    try:
        write(arguments.commit, arguments.folder)
    except (ValueError, OSError) as error:
        print(f"code: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
