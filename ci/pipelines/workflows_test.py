#!/usr/bin/env python3
"""What workflows.py must find: mistakes that a service would not speak of, or too late."""

import copy
import os
import pathlib
import sys
import unittest
import unittest.mock

import rehearsal
import trial
import workflows


class Schemas(trial.Trial):
    """What the services' own schemas refuse, where check-jsonschema is; a pipeline must have it."""

    def setUp(self) -> None:
        super().setUp()
        workflows.findings.clear()

    @unittest.skipUnless(workflows.PROGRAM.is_file() or os.environ.get("CI"),
                         "there is no check-jsonschema: ci/setup check installs it")
    def test_what_a_service_would_refuse_is_found(self) -> None:
        for service, path, old, new, words in (
                ("github", workflows.GITHUB, "timeout-minutes: 30", "timeout-minute: 30",
                 "'timeout-minute' was unexpected"),
                ("github", workflows.GITHUB, "needs: cpu", "needs: {job: cpu}", "jobs.gpu.needs"),
                ("github", workflows.GITHUB, "contents: read", "contents: reed", "'reed'"),
                ("github", workflows.GITHUB, "name: tollens\non:", "name: [\non:", "parse"),
                ("github", workflows.GITHUB, "name: tollens\n", "name: a\nname: b\n", "parse"),
                ("github", workflows.GITHUB, "- uses: actions", "- run: b\n        uses: a",
                 "jobs.cpu"),
                ("gitlab", workflows.GITLAB, "when: always", "when: ever", "'ever' is not one"),
                ("gitlab", workflows.GITLAB, "junit: ", "junits: ", "'junits' was unexpected"),
                ("gitlab", workflows.GITLAB, "expire_in: 4 weeks", "expire: 4 weeks", "'expire'")):
            text = path.read_text(encoding="utf-8")
            self.assertIn(old, text)
            changed = self.write("changed.yml", text.replace(old, new, 1))
            self.assertIn(words, "\n".join(workflows.check_schema(service, changed)))

    def test_what_was_not_checked_is_said_and_in_a_pipeline_found(self) -> None:
        absent = pathlib.Path("/nonexistent/check-jsonschema")
        with unittest.mock.patch.dict(os.environ, clear=True):
            self.assertIn("were not checked", workflows.check_schemas(absent))
            self.assertEqual(workflows.findings, [])
            os.environ["CI"] = "true"
            workflows.check_schemas(absent)
        self.assertIn("there is no check-jsonschema", workflows.findings[0])

    def test_a_validator_that_says_nonsense_is_no_pass(self) -> None:
        with self.assertRaisesRegex(OSError, "ended with"):
            workflows.check_schema("github", workflows.GITHUB, pathlib.Path("/bin/true"))


class Mistakes(unittest.TestCase):
    def setUp(self) -> None:
        workflows.findings.clear()
        self.github = workflows.load(workflows.GITHUB)
        self.gitlab = workflows.load(workflows.GITLAB)

    def test_what_is_here_is_right(self) -> None:
        workflows.check_github(self.github)
        workflows.check_gitlab(self.gitlab)
        self.assertEqual(workflows.findings, [])

    def test_mistakes_that_no_schema_knows(self) -> None:
        for change, words in (
                (lambda jobs, inputs: jobs["gpu"].update({"needs": "cqu"}), "there is no job cqu"),
                (lambda jobs, inputs: inputs.pop("ref"), "the input ref is not declared"),
                (lambda jobs, inputs: jobs["cpu"]["steps"][2].update(
                    {"run": "echo ${{ inputs.build }}"}), "lets its value run commands"),
                (lambda jobs, inputs: jobs["cpu"]["steps"][0].update(
                    {"uses": "actions/checkout@main"}), "not an action of a known version"),
                (lambda jobs, inputs: jobs["cpu"]["steps"][0]["with"].update({"depth": "1"}),
                 "actions/checkout has no option 'depth'")):
            flow = copy.deepcopy(self.github)
            change(flow["jobs"], flow["on"]["workflow_call"]["inputs"])
            workflows.findings.clear()
            workflows.check_github(flow)
            self.assertIn(words, "\n".join(workflows.findings))

    def test_gitlab(self) -> None:
        self.gitlab[".tollens-gpu"]["script"].append({"echo a": "b"})
        workflows.check_gitlab(self.gitlab)
        self.assertIn("quote it", "\n".join(workflows.findings))

    def test_a_rehearsal_that_fails_is_seen(self) -> None:
        flow = copy.deepcopy(self.gitlab)
        for name in (".tollens-cpu", ".tollens-gpu", ".tollens-fleet"):
            flow[name]["script"] = ["false"]
        found = "\n".join(rehearsal.rehearse("GitLab", flow))
        self.assertIn("ended with [1, 1, 1, 1], not 0", found)
        self.assertIn("tollens-cpu has no junit.xml", found)

    def test_a_condition_is_of_the_inputs(self) -> None:
        given = {"a": "x", "b": ""}
        for condition, holds in (("always()", True), ("inputs.a != ''", True),
                                 ("inputs.b != ''", False),
                                 ("inputs.a != '' || inputs.b != ''", True),
                                 ("always() && inputs.b != ''", False)):
            self.assertEqual(rehearsal.applies(condition, given), holds, condition)


class Help(trial.Trial):
    """Who meets a command asks it first."""

    def test_every_command_says_what_it_does(self) -> None:
        for path in (*sorted((workflows.ROOT / "ci").iterdir()), pathlib.Path(workflows.__file__)):
            first = path.read_bytes()[:20] if path.is_file() else b""
            if not first.startswith(b"#!") or not os.access(path, os.X_OK):
                continue
            # Python's argparse has both.
            for option in ("--help", "-h") if b"/sh" in first else ("--help",):
                said = self.expect(0, "", "sh", "-c", 'exec "$0" "$1" </dev/null 2>/dev/null', path,
                                   option)
                self.assertGreater(len(said.splitlines()), 1, path.name)


if __name__ == "__main__":
    sys.exit(unittest.main())
