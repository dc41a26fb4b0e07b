#!/usr/bin/env python3
"""What commands of ninja say is heard, by a ninja with --quiet and by an older one."""

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
    def test_commands_are_heard_and_a_failure_is_an_exit_code(self) -> None:
        self.write("build.ninja", RULES)
        self.write("older/ninja", OLDER.format(ninja=shutil.which("ninja")))
        for first in ("/nonexistent", str(self.folder / "older")):
            env = {"PATH": f"{first}{os.pathsep}{os.environ['PATH']}"}
            code, said = self.run_it(QUIET, "-k", "0", "bad", "good", env=env)
            self.assertNotEqual(code, 0, first)
            self.assertIn("said bad", said.splitlines())
            self.assertIn("FAILED: ", said)
            (self.folder / "good").unlink()
            said = self.expect(0, "said good\n", QUIET, "good", env=env)
            self.assertTrue(first != "/nonexistent" or said == "said good\n", said)
            (self.folder / "good").unlink()


if __name__ == "__main__":
    unittest.main()
