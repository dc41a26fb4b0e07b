#!/usr/bin/env python3
"""Each budget of tidying/budgets.py is exceeded by one too many, and not before."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tidying import budgets


class Budgets(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("README.md", "ci/CHANGELOG.md"):
            self.put(name, "a\n")

    def put(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def found(self) -> list[str]:
        return budgets.findings(budgets.tree(self.root))

    def test_each_is_met_to_the_last_and_exceeded_by_one_more(self) -> None:
        for name, text, more in (
                ("README.md", "a\n" * 120, "a\n"), ("ci/CHANGELOG.md", "a " * 1500, "a"),
                ("ci/x.py", "a\n" * 13_700, "a\n"), ("ci/y", "#!/bin/sh\n" * 13_700, "a\n"),
                ("docs/z.md", "a " * 44_998, "a"), ("big.bin", "a" * 39_999_990, "a" * 20),
                ("kernels/README.md", "a\n" * 150, "a\n")):
            with self.subTest(name=name):
                self.put(name, text)
                self.assertEqual(self.found(), [])
                self.put(name, text + more)
                self.assertEqual(len(self.found()), 1, self.found())
                self.put(name, "a")
    def test_files_are_counted_and_published_ones_are_not(self) -> None:
        for number in range(2898):
            self.put(f"many/{number}.c", "")
        self.put("reports/published/run/results.json", "")
        self.assertEqual(self.found(), [])
        self.put("many/more.c", "")
        self.assertEqual(self.found(), ["2901 files outside published evidence; at most 2900"])


if __name__ == "__main__":
    sys.exit(unittest.main())
