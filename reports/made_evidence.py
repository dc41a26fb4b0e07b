"""A small evidence folder for the tests, with an example of everything that a report shows."""

import json
import pathlib
import zlib
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
INTERVAL = {"median": 1.5, "low": 1.25, "high": None, "spread": 0.1}
BLOCKS = ("block,order,calls,ns_1,ns_2,ns_3,ns_4,control_ns_1,control_ns_2,control_ns_3,"
          "control_ns_4,effect,control_effect,waited_ns_1,waited_ns_2,waited_ns_3,waited_ns_4\n"
          "1,BSSB,50,1,2,3,4,5,6,7,8,1.5,0.25,0,0,0,0\n"
          "2,SBBS,50,1,2,3,4,5,6,7,8,2.5,-0.25,0,0,0,7\n")


def result(name: str = "H3", **changed: Any) -> dict[str, Any]:
    return {"id": name, "title": "Transfers", "verdict": "falsified",
            "reason": "a | <b>bold</b> reason", "code": None, "effect": 2.0, "unit": "violations",
            "low": None, "high": None, "threshold": 0.0, "direction": "at_most", "samples": 7,
            "severity": {"caught": 2, "of": 3},
            "detection_limits": [
                {"fault": "drop_one_in",
                 "noticed": {"saboteur": "drop_one_in=10", "words": "one <copy> in 10 is skipped"},
                 "missed": {"saboteur": "drop_one_in=99", "words": "one copy in 99 is skipped"}},
                {"fault": "late", "noticed": None,
                 "missed": {"saboteur": "late", "words": "copies are late"}}],
            "duration_s": 0.5, **changed}


def effect(name: str, **changed: Any) -> dict[str, Any]:
    return {"name": name, "recorded_only": False, "code": "undecided", "decision": "undecided",
            "threshold": 2.0, "blocks": 2, "effect": INTERVAL,
            "control": {"median": 1, "low": 0.99, "high": 1.01}, "baseline_ns": 1000,
            "subject_ns": None, **changed}


def make(folder: pathlib.Path, row: dict[str, Any] | None = None, manifest: bool = False,
         **run: Any) -> None:
    """Writes the folder; the keywords in run change entries of results.json and run.json."""
    row = row or result()
    own = row["id"]
    attack = {"name": "every_size", "ending": "failed", "detail": None, "samples": 7,
              "violations": 2, "duration_s": 0.5}
    device = {"kind": "soft", "name": run.pop("device", "A <device>")}
    record = {"schema": 1, "name": "every_size", "violations": 2,
              "counterexamples": ["byte 7 is <wrong>"], "notes": ["a <note>"],
              "series": [{"name": "ramp", "count": 1000, "max": 1000}],
              "effects": [effect("launch_1")],
              "measures": [{"name": "worst, seed 3", "value": 1.0625, "recorded_only": False},
                           {"name": "no number", "value": None, "recorded_only": True}]}
    texts: dict[str, Any] = {
        "results.json": {"schema": 1, "device": device, "mode": "quick", "commit": "",
                         "dirty": False, "claims": [row], **run},
        "machine.json": {"schema": 1, "device": {**device, "compute_capability": 90,
                                                 "memory_bytes": 1 << 33},
                         "driver": {"version": 13000}, "dirty": False, "compiler": "gcc",
                         "host": {"processor": "p", "processors": 2, "system": "s", "kernel": "k"}},
        "run.json": {"schema": 1, "command": "tollens run --out x H3 --sabotage", "seed": 1,
                     "duration_s": 1.0, "exit_code": 1, "sabotage": True,
                     "begin_s": run.get("begin_s", 1.7e9)},
        f"{own}/verdict.json": {**row, "attacks": [attack]},
        f"{own}/claim.json": {"schema": 1, "source": "spec", "claim": "words"},
        f"{own}/attacks/every_size.json": record,
        f"{own}/sabotage/copy_flip/attacks/every_size.json": record,
        f"{own}/sabotage/copy_flip/verdict.json": {
            "schema": 1, "saboteur": "copy_flip", "must": "falsified", "verdict": "falsified",
            "right": True, "reason": None},
        f"{own}/every_size.hlog": (ROOT / "fixtures/hdr/golden.hlog").read_text(),
        f"{own}/every_size.seed0.csv": "step,requested,used,held,largest_hole\n"
                                       "10,1000,1024,2048,9\n20,4000,4096,4096,9\n",
        f"{own}/every_size.seed0_places.csv": "begin,end,address,bytes\n10,20,4096,1048576\n"
                                              "15,20,8388608,1048576\n",
        f"{own}/every_size.launch_1.csv": BLOCKS,
        f"{own}/every_size.streams.csv": "lane,what,begin_ns,end_ns\nstream 1,copy,5,90\n"
                                         "stream 2,kernel,50,120\n",
        f"{own}/every_size.against_fp64.csv": "error,count\n0,3\n1e-7,5\n2e-6,2\n",
        f"{own}/every_size.end.csv": "address,bytes,state\n4096,1048576,live\n2000000,65536,free\n",
        f"{own}/every_size.new_kind.csv": "a,b\n1,2\n",
    }
    files = {}
    for name, data in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = data if isinstance(data, str) else json.dumps(data)
        path.write_text(text)
        if name != "run.json":  # a run writes it last, after the manifest
            files[name] = {"bytes": len(text), "crc32": f"{zlib.crc32(text.encode()):08x}"}
    (folder / "manifest.json").unlink(missing_ok=True)
    if manifest:
        listed = json.dumps({"schema": 1, "files": files})
        (folder / "manifest.json").write_text(listed)
        said = {**texts["run.json"], "list_crc32": f"{zlib.crc32(listed.encode()):08x}"}
        (folder / "run.json").write_text(json.dumps(said))
