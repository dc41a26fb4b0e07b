"""Tests of the schema of results.json: python3 -m unittest reports.schema_test."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from reports import schema

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOOD: dict[str, Any] = {
    "schema": 1, "device": {"kind": "soft", "name": "a device"}, "mode": "quick", "commit": "",
    "dirty": True, "claims": [
        {"id": "H4", "verdict": "survived", "reason": None, "effect": 0.04, "unit": "us",
         "low": 0.03, "high": None, "threshold": 2.0, "direction": "at_most", "samples": 50,
         "severity": {"caught": 1, "of": 2, "untold": 1}, "something new": "may come",
         "detection_limits": [
             {"fault": "drop", "missed": None, "noticed": {"saboteur": "drop", "words": "gone"}},
             {"fault": "late", "noticed": None, "missed": {"saboteur": "late", "words": "l"}}]}]}


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    data = copy.deepcopy(GOOD)
    inner: Any = data
    for step in path[:-1]:
        inner = inner[step]
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return data


BAD = [changed(path, value) for path, value in (
    (["schema"], 2), (["schema"], True), (["device"], "soft"), (["device", "kind"], "gpu"),
    (["device", "name"], KeyError), (["mode"], "slow"), (["dirty"], 1), (["claims"], {}),
    (["claims"], GOOD["claims"] * 65), (["claims", 0, "id"], "H0"),
    (["claims", 0, "id"], KeyError),
    (["claims", 0, "verdict"], "proved"), (["claims", 0, "effect"], "0.04"),
    (["claims", 0, "threshold"], -1), (["claims", 0, "threshold"], None),
    (["claims", 0, "samples"], 0.5), (["claims", 0, "severity", "of"], KeyError),
    (["claims", 0, "direction"], "down"), (["claims", 0, "detection_limits"], "none"),
    (["claims", 0, "detection_limits", 0, "fault"], KeyError),
    (["claims", 0, "detection_limits", 0, "missed"], KeyError),
    (["claims", 0, "detection_limits", 0, "noticed"], "drop"),
    (["claims", 0, "detection_limits", 1, "missed", "words"], 7))]


class Schema(unittest.TestCase):
    def test_good_data_pass_and_each_fault_is_found(self) -> None:
        self.assertEqual(schema.check_results(GOOD), [])
        for data in BAD:
            self.assertNotEqual(schema.check_results(data), [], data)

    def test_a_word_it_does_not_know_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "maxLength"):
            schema.faults("text", {"type": "string", "maxLength": 3})

    def test_as_a_program_it_says_what_is_wrong(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for text, code in ((json.dumps(GOOD), 0), (json.dumps(BAD[0]), 1), ("{", 2)):
                path = pathlib.Path(folder) / "results.json"
                path.write_text(text)
                run = subprocess.run(
                    [sys.executable, "-m", "reports.schema", str(schema.RESULTS), str(path)],
                    cwd=ROOT, capture_output=True, check=False)
                self.assertEqual(run.returncode, code, run)

    def test_published_evidence_passes(self) -> None:
        found = [*ROOT.glob("reports/published/**/results.json"),
                 *ROOT.glob("build/check/evidence/results.json")]
        for path in found:
            self.assertEqual(schema.check_results(json.loads(path.read_text())), [], path)

    def test_jsonschema_agrees(self) -> None:
        try:
            import jsonschema
        except ImportError:
            self.skipTest("Python's jsonschema is not installed")
        validator = jsonschema.validators.validator_for(json.loads(schema.RESULTS.read_text()))(
            json.loads(schema.RESULTS.read_text()))
        for data in [GOOD, *BAD]:
            self.assertEqual(validator.is_valid(data), schema.check_results(data) == [], data)


if __name__ == "__main__":
    unittest.main()
