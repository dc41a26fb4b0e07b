#!/usr/bin/env python3
"""What ninja says of progress is left out, by ninja's own --quiet and where it has none."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

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


class QuietNinja(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        (self.at / "build.ninja").write_text(RULES)
        (self.at / "older").mkdir()
        (self.at / "older/ninja").write_text(OLDER.format(ninja=shutil.which("ninja")))
        (self.at / "older/ninja").chmod(0o755)

    def run_with(self, first: str, *words: str) -> tuple[int, list[str]]:
        path = f"{first}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run([QUIET, *words], cwd=self.at, env={**os.environ, "PATH": path},
                              text=True, stdout=subprocess.PIPE, check=False)
        return done.returncode, done.stdout.splitlines()

    def test_commands_are_heard_and_progress_is_not(self) -> None:
        for first in ("/nonexistent", str(self.at / "older")):
            code, said = self.run_with(first, "good")
            self.assertEqual((code, said), (0, ["said good"]), first)
            (self.at / "good").unlink()

    def test_a_failure_is_told_and_is_an_exit_code(self) -> None:
        for first in ("/nonexistent", str(self.at / "older")):
            code, said = self.run_with(first, "-k", "0", "bad", "good")
            self.assertNotEqual(code, 0, first)
            self.assertIn("said bad", said, first)
            self.assertTrue(any(line.startswith("FAILED: ") for line in said), said)
            self.assertTrue((self.at / "good").exists(), first)
            (self.at / "good").unlink()


if __name__ == "__main__":
    unittest.main()
