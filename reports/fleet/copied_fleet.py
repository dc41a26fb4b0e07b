"""A fleet of copies of one run, to time a merge of real evidence:

    python3 -m reports.fleet.copied_fleet EVIDENCE FOLDER 1000
    time build/tollens merge FOLDER/* --no-png --out merged

Each copy has another node and another time; its other files are hard links, so a thousand copies of
six MB take no room.
"""

import json
import os
import pathlib
import sys
import zlib


def copy(source: pathlib.Path, target: pathlib.Path, number: int) -> None:
    for path in (path for path in source.rglob("*") if path.is_file()):
        name = path.relative_to(source)
        if name.parts[0] != "report":
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target / name)
    machine, manifest, run = (json.loads((source / f"{name}.json").read_text())
                              for name in ("machine", "manifest", "run"))
    machine["node"] = f"copy-{number:04}"
    for part in (machine, run):
        part["begin_s"] += number
    text = json.dumps(machine)
    manifest["files"]["machine.json"] = {"bytes": len(text),
                                         "crc32": f"{zlib.crc32(text.encode()):08x}"}
    listed = json.dumps(manifest)
    run["list_crc32"] = f"{zlib.crc32(listed.encode()):08x}"
    for name, words in (("machine", text), ("manifest", listed), ("run", json.dumps(run))):
        (target / f"{name}.json").unlink()  # a link: writing to it would change the source
        (target / f"{name}.json").write_text(words)


if __name__ == "__main__":
    for at in range(int(sys.argv[3])):
        copy(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) / f"copy-{at:04}", at)
