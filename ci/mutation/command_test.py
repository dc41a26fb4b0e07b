#!/usr/bin/env python3
"""What ci/mutate refuses, and the log of verdicts."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from mutation.results import Log, Verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]


class TheCommand(unittest.TestCase):
    def refuse(self, *words: str) -> str:
        done = subprocess.run([sys.executable, "ci/mutate", *words], cwd=ROOT, text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_wrong_files_are_refused(self) -> None:
        self.assertIn("there is no file runtime/nothing.c", self.refuse("runtime/nothing.c"))
        for name in ("runtime/driver/core/status_test.c", "runtime/driver/bench/pool_bench.c", "README.md",
                     "runtime/examples", "/"):
            self.assertIn(f"{name} has nothing to mutate", self.refuse(name))
        self.assertIn("--sample must be 1 or more", self.refuse("--sample", "0"))
        self.assertIn("--jobs must be 1 or more", self.refuse("--jobs", "0"))
        self.assertIn("there is no test program test-x",
                      self.refuse("--programs", "test-runtime,test-x"))
        self.assertIn("--sanitizers needs --jobs 1", self.refuse("--jobs", "2", "--sanitizers"))

    def test_one_line_may_be_named(self) -> None:
        done = subprocess.run([sys.executable, "ci/mutate", "--list", "runtime/driver/core/status.c:20",
                               "runtime/driver/core/hdr.c:203"], cwd=ROOT, text=True,
                              capture_output=True, check=True)
        places = {":".join(line.split(":")[:2]) for line in done.stdout.split("\n") if line}
        self.assertIn("runtime/driver/core/hdr.c:203", places)
        self.assertLessEqual(places, {"runtime/driver/core/hdr.c:203", "runtime/driver/core/status.c:20"})

    def test_a_broken_file_of_survivors_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "survivors.toml"
            for text in ("survivors = [\n", 'survivors = [{ file = "a", line = 1 }]\n'):
                path.write_text(text)
                self.assertIn(str(path), self.refuse("--check", "--out", folder))


class TheLog(unittest.TestCase):
    def test_a_survivor_is_tried_again_when_a_test_has_changed(self) -> None:
        dead, alive = (Verdict(kind, "", 0.0, "file", "tests") for kind in ("killed", "survived"))
        self.assertTrue(dead.holds("file", "other") and alive.holds("file", "tests"))
        self.assertFalse(dead.holds("other", "tests") or alive.holds("file", "other"))
        self.assertEqual(Log(pathlib.Path("/nonexistent")).verdicts, {})


if __name__ == "__main__":
    sys.exit(unittest.main())
