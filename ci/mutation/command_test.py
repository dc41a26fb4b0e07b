#!/usr/bin/env python3
"""What ci/mutate refuses, the log of verdicts, and which of gcov's files count something."""

import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

from mutation.cover import COUNTERS, counts_something
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
        for name in ("runtime/core/status_test.c", "runtime/bench/pool_bench.c", "README.md",
                     "runtime/examples", "/"):
            self.assertIn(f"{name} has nothing to mutate", self.refuse(name))
        self.assertIn("--sample must be 1 or more", self.refuse("--sample", "0"))
        self.assertIn("--jobs must be 1 or more", self.refuse("--jobs", "0"))
        self.assertIn("there is no test program test-x",
                      self.refuse("--programs", "test-runtime,test-x"))
        self.assertIn("--sanitizers needs --jobs 1", self.refuse("--jobs", "2", "--sanitizers"))

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


class TheCounts(unittest.TestCase):
    def test_a_file_of_zeros_counts_nothing(self) -> None:
        function = struct.pack("<IiIII", 0x01000000, 12, 1, 2, 3)
        zeros = struct.pack("<Ii", COUNTERS, -16)
        ones = struct.pack("<IiQQ", COUNTERS, 16, 0, 1)

        def file(version: bytes, *records: bytes) -> bytes:
            return b"adcg" + version[::-1] + bytes(8) + b"".join(records)

        self.assertFalse(counts_something(file(b"B22*", function, zeros, function, zeros)))
        self.assertTrue(counts_something(file(b"B33*", function, zeros, function, ones)))
        self.assertTrue(counts_something(file(b"B13*", function, zeros)))  # cannot be told


if __name__ == "__main__":
    sys.exit(unittest.main())
