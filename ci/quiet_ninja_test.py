#!/usr/bin/env python3
"""What ninja says of progress is left out, by ninja's own --quiet and where it has none."""

import os
import pathlib
import shutil
import unittest

import trial

QUIET = pathlib.Path(__file__).with_name("quiet_ninja")
RULES = """\
rule say
  command = echo said $out && $then
build good: say
  then = touch good
build bad: say
  then = exit 3
"""
# ninja as it was before --quiet, made of the one that is here.
OLDER = """#!/bin/sh
for option; do
    if [ "$option" = --quiet ]; then
        echo "ninja: unrecognized option '--quiet'" >&2
        exit 1
    fi
done
exec {ninja} "$@"
"""


class QuietNinja(trial.Trial):
    def setUp(self) -> None:
        super().setUp()
        self.write("build.ninja", RULES)
        self.write("older/ninja", OLDER.format(ninja=shutil.which("ninja")))

    def run_with(self, first: str, *words: str) -> tuple[int, list[str]]:
        code, said = self.run_it(QUIET, *words, env={
            "PATH": f"{first}{os.pathsep}{os.environ['PATH']}"})
        return code, said.splitlines()

    def test_commands_are_heard_and_progress_is_not(self) -> None:
        for first in ("/nonexistent", str(self.folder / "older")):
            code, said = self.run_with(first, "good")
            self.assertEqual((code, said), (0, ["said good"]), first)
            (self.folder / "good").unlink()

    def test_a_failure_is_told_and_is_an_exit_code(self) -> None:
        for first in ("/nonexistent", str(self.folder / "older")):
            code, said = self.run_with(first, "-k", "0", "bad", "good")
            self.assertNotEqual(code, 0, first)
            self.assertIn("said bad", said, first)
            self.assertTrue(any(line.startswith("FAILED: ") for line in said), said)
            self.assertTrue((self.folder / "good").exists(), first)
            (self.folder / "good").unlink()


if __name__ == "__main__":
    unittest.main()
