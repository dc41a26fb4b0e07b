"""Tests of how detection limits are reported: python3 -m unittest reports.limits_test."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from reports import made_evidence
from reports.made_evidence import ROOT


class Limits(unittest.TestCase):
    def report(self, row: dict[str, Any]) -> tuple[str, str]:
        """The HTML page and the Markdown of a run with this claim."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            made_evidence.make(folder, row)
            done = subprocess.run([sys.executable, "-m", "reports", name, "--no-png"], cwd=ROOT,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return ((folder / "report/report.html").read_text(),
                    (folder / "report/report.md").read_text())

    def test_a_report_says_what_would_have_been_noticed(self) -> None:
        html, text = self.report(made_evidence.result())
        self.assertIn("<li>H3 would have noticed: one &lt;copy&gt; in 10 is skipped; "
                      "not noticed: one copy in 99 is skipped</li>", html)
        self.assertIn("<li>H3 would not have noticed: copies are late</li>", html)
        self.assertIn("* H3 would have noticed: one \\<copy\\> in 10 is skipped; not", text)

    def test_older_evidence_has_none(self) -> None:
        older = made_evidence.result()
        del older["detection_limits"]
        for row in (older, made_evidence.result(detection_limits=None)):
            html, text = self.report(row)
            self.assertNotIn("have noticed", html + text)
            self.assertNotIn("<h3>Detection limits", html)


if __name__ == "__main__":
    unittest.main()
