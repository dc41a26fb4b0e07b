#!/usr/bin/env python3
"""What ci/workflows.py must find: mistakes that a service would not speak of, or too late."""

import copy
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

import workflows


class Mistakes(unittest.TestCase):
    def setUp(self) -> None:
        workflows.findings.clear()
        self.github = workflows.load(workflows.GITHUB)
        self.gitlab = workflows.load(workflows.GITLAB)

    def expect(self, words: str) -> None:
        self.assertTrue(any(words in found for found in workflows.findings), workflows.findings)
        workflows.findings.clear()

    def test_what_is_here_is_right(self) -> None:
        workflows.check_github(self.github)
        workflows.check_gitlab(self.gitlab)
        self.assertEqual(workflows.findings, [])

    def broken(self, change: Any) -> Any:
        flow = copy.deepcopy(self.github)
        change(flow, flow["jobs"]["cpu"]["steps"])
        workflows.check_github(flow)

    def test_keys_and_references(self) -> None:
        self.broken(lambda flow, steps: flow["jobs"]["cpu"].update({"run-on": "x"}))
        self.expect("there is no key 'run-on'")
        self.broken(lambda flow, steps: flow["jobs"]["gpu"].update({"needs": "cqu"}))
        self.expect("there is no job cqu")
        self.broken(lambda flow, steps: flow["on"]["workflow_call"]["inputs"].pop("ref"))
        self.expect("the input ref is not declared")

    def test_steps(self) -> None:
        self.broken(lambda flow, steps: steps[2].update({"run": "echo ${{ inputs.build }}"}))
        self.expect("lets its value run commands")
        self.broken(lambda flow, steps: steps[0].update({"uses": "actions/checkout@main"}))
        self.expect("not an action of a known version")
        self.broken(lambda flow, steps: steps[0].update({"run": "true"}))
        self.expect("either uses an action or runs")

    def test_gitlab(self) -> None:
        self.gitlab[".tollens-gpu"]["script"].append({"echo a": "b"})
        workflows.check_gitlab(self.gitlab)
        self.expect("quote it")

    def test_a_key_that_stands_twice(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name, "twice.yml")
            path.write_text("jobs: {}\non: push\njobs: {}\n", encoding="utf-8")
            self.assertIn("on", workflows.load(path))
        self.expect("the key 'jobs' stands twice")

    def test_a_rehearsal_that_fails_is_seen(self) -> None:
        flow = copy.deepcopy(self.gitlab)
        for name in (".tollens-cpu", ".tollens-gpu"):
            flow[name]["script"] = ["true"]
        workflows.rehearse("GitLab", flow)
        self.expect("the lanes ended with [0, 0], not 1")


class Help(unittest.TestCase):
    """Who meets a command asks it first."""

    def test_every_command_says_what_it_does(self) -> None:
        for path in sorted(pathlib.Path(__file__).parent.iterdir()):
            first = path.read_bytes()[:20] if path.is_file() else b""
            if not first.startswith(b"#!") or not os.access(path, os.X_OK):
                continue
            for option in ("--help", "-h"):
                said = subprocess.run([path, option], capture_output=True, text=True, check=False,
                                      stdin=subprocess.DEVNULL, timeout=60)
                self.assertEqual(said.returncode, 0, f"{path.name} {option}: {said.stderr}")
                self.assertGreater(len(said.stdout.splitlines()), 1, path.name)


if __name__ == "__main__":
    sys.exit(unittest.main())
