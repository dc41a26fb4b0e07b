#!/usr/bin/env python3
"""How ci/check counts its steps: what could not be run is neither passed nor failed."""

import pathlib
import shutil
import unittest

import trial

CHECK = pathlib.Path(__file__).with_name("check")
BEGIN, END = "# ---- running a step", "# run_tests PREFIX"
# Those functions, and steps of every kind.
PROGRAM = """
set -u
logs=logs only= options= check_begin=0
mkdir logs
touch logs/ran logs/failed logs/skipped logs/left-out
{functions}
nothing() {{ echo "not run here: there is no ptxas"; return 77; }}
part() {{ echo "not run here: with nvcc: there is none"; echo "summary: 2 programs"; }}
unexplained() {{ return 77; }}
unbound() {{ echo "$nowhere"; }}
for name in {names}; do step "$name" "$name"; done
finish
"""


class Steps(trial.Trial):
    def run_steps(self, *names: str) -> tuple[int, list[str], dict[str, str]]:
        text = CHECK.read_text()
        functions = text[text.index(BEGIN):text.index(END)]
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        code, said = self.run_it("sh", "-c", PROGRAM.format(functions=functions,
                                                            names=" ".join(names)))
        logs = {path.name: path.read_text() for path in (self.folder / "logs").iterdir()}
        return code, said.splitlines(), logs

    def test_what_cannot_be_run_is_skipped_with_its_reason(self) -> None:
        code, said, logs = self.run_steps("true", "nothing", "part")
        self.assertEqual(code, 0)
        self.assertIn("check: nothing        skipped: there is no ptxas", said)
        self.assertEqual(said[-1], "check: 2 passed, 0 failed, 1 skipped")
        self.assertEqual(logs["skipped"], "nothing there is no ptxas\n")
        self.assertEqual(logs["ran"].split(), ["true", "part"])

    def test_what_runs_in_part_says_what_did_not(self) -> None:
        _, said, _ = self.run_steps("part")
        self.assertTrue(said[0].startswith("check: part           passed"), said)
        self.assertIn("2 programs", said[0])
        self.assertEqual(said[1].split(maxsplit=1)[1], "not run here: with nvcc: there is none")

    def test_a_failure_and_a_skip_without_a_reason_fail(self) -> None:
        for name in ("false", "unexplained", "unbound"):
            code, said, logs = self.run_steps("true", name)
            self.assertEqual(code, 1)
            self.assertEqual(said[-2:], [f"check: failed: {name}", "check: 1 passed, 1 failed"])
            self.assertEqual(logs["skipped"], "")

    def test_a_step_that_does_not_exist_is_an_error(self) -> None:
        for words in (("--only", ","), ("--only",), ("--nothing",)):
            self.expect(2, "or no step after it", CHECK, *words)


if __name__ == "__main__":
    unittest.main()
