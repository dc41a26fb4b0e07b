"""Packs an evidence folder into one archive, to publish it.

    python3 -m reports.pack EVIDENCE reports/published/RUN

writes evidence.tar.xz, results.json, summary.md and code.json (reports/code.py: which code the
verdicts are of) into the second folder and leaves the first as it is. reports.published_index
prints the row of index.toml to add. All commands that read an evidence folder read the archive as
well. The same files always make the same bytes: names are sorted, and times, owners and modes are
left out. A report/ in the evidence folder is not packed, since it can be made again.
"""

import argparse
import json
import pathlib
import sys

from . import archive, code, evidence

BESIDE = ("results.json", "summary.md")  # what a reader on the web opens first


def files_of(folder: pathlib.Path) -> dict[str, bytes]:
    """The files of a folder by their names, sorted. ValueError: there is a link among them."""
    files = {}
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise ValueError(f"{path} is a link, which an evidence archive cannot have")
        if path.is_file() and not name.startswith("report/"):
            files[name] = path.read_bytes()
    return files


def pack(folder: pathlib.Path, out: pathlib.Path) -> str:
    """Writes the archive and the copies beside it; returns a line about it."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    evidence.read(folder)  # refuses damaged evidence
    files, path = files_of(folder), out / archive.NAME
    data = archive.packed(files)
    if path.exists() and path.read_bytes() != data:
        raise ValueError(f"{path} exists and has other evidence in it")
    out.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if archive.load(path).files != files:
        raise ValueError(f"{path} does not read back as {folder}")
    for name in BESIDE:
        if name in files:
            (out / name).write_bytes(files[name])
    said = f"{path}: {len(files)} files, {sum(map(len, files.values()))} bytes in {len(data)}"
    try:
        code.write(str(json.loads(files["results.json"]).get("commit")), out)
    except ValueError as error:
        said += f"; no {code.NAME}, since {error}"
    return said


def main() -> int:
    parser = argparse.ArgumentParser(prog="reports.pack", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="an evidence folder of tollens run")
    parser.add_argument("out", type=pathlib.Path, help="where the archive goes")
    arguments = parser.parse_args()
    try:
        print(pack(arguments.folder, arguments.out))
    except (ValueError, OSError) as error:
        print(f"pack: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
