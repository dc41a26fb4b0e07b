#!/usr/bin/env python3
"""Checks the pipelines that others use, as far as it can be done without their services, and
rehearses their shell steps on the soft device.

    ci/workflows.py                 the services' own schemas; keys, inputs, needs, versions;
                                    shellcheck where it is
    ci/workflows.py --rehearse [github|gitlab]   and each job's steps (rehearsal.py)

Prints one line a finding, and exits 1 if there is any; 2 where a file cannot be read. Where there
is no check-jsonschema it says that the schemas were not checked; in a pipeline that is a finding.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import pipeline_schemas
import rehearsal
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
GITHUB = ROOT / ".github/workflows/tollens.yml"
GITLAB = ROOT / "ci/tollens.gitlab-ci.yml"

# What each part of a file may have. A key that is not known is a finding: the services ignore some
# misspelt keys without a word.
TOP = {"name", "on", "permissions", "jobs"}
INPUT = {"description", "type", "required", "default"}
JOB = {"name", "needs", "if", "strategy", "runs-on", "timeout-minutes", "steps"}
STEP = {"name", "if", "uses", "with", "env", "run"}
WITH = {"actions/checkout": {"repository", "ref", "path", "persist-credentials"},
        "actions/upload-artifact": {"name", "path", "if-no-files-found", "retention-days"},
        "actions/download-artifact": {"name", "path", "pattern"}}
LAB_JOB = {"image", "stage", "needs", "timeout", "variables", "script", "artifacts", "extends",
           "tags", "allow_failure", "when", "parallel"}
ARTIFACTS = {"when", "expire_in", "paths", "reports"}

findings: list[str] = []


def find(where: str, text: str) -> None:
    findings.append(f"{where}: {text}")


def check_keys(where: str, part: Any, known: set[str]) -> None:
    if not isinstance(part, dict):
        find(where, f"this is no mapping: {part!r}")
        return
    for key in sorted(set(map(str, part)) - known):
        find(where, f"there is no key '{key}'")


def load(path: pathlib.Path) -> Any:
    class Loader(yaml.SafeLoader):
        """YAML as the services read it: 'on' is a word, and a key stands once."""

    def mapping(loader: Any, node: Any) -> Any:
        keys = [key.value for key, _ in node.value]
        for key in sorted({key for key in keys if keys.count(key) > 1}):
            find(path.name, f"the key '{key}' stands twice, in line {node.start_mark.line + 1}")
        return yaml.SafeLoader.construct_mapping(loader, node, deep=True)

    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    return yaml.load(path.read_text(encoding="utf-8"), Loader)  # noqa: S506 (a safe loader)


def check_schemas(program: pathlib.Path = pipeline_schemas.PROGRAM) -> str:
    """What is to be said of it. Services set CI; there nothing may be left out unseen."""
    if not program.is_file():
        said = f"their schemas were not checked: there is no {program.name}; ci/setup check has it"
        if os.environ.get("CI"):
            find("schemas", said)
        return said
    for service, path in (("github", GITHUB), ("gitlab", GITLAB)):
        findings.extend(pipeline_schemas.check(service, path, program))
    return "against the schemas of GitHub and GitLab"


def check_shell(where: str, script: str) -> None:
    if not shutil.which("shellcheck"):
        return
    # Options are words, and are meant to be split.
    said = subprocess.run(["shellcheck", "--shell=sh", "--exclude=SC2086", "-"], text=True,
                          input=script, capture_output=True, check=False)
    if said.returncode != 0:
        find(where, said.stdout.strip())


def check_step(where: str, step: Any) -> None:
    check_keys(where, step, STEP)
    if ("uses" in step) == ("run" in step):
        find(where, "a step either uses an action or runs a command")
    if "uses" in step:
        action, _, version = step["uses"].partition("@")
        if action not in WITH or not re.fullmatch(r"v\d+", version):
            find(where, f"{step['uses']} is not an action of a known version")
        check_keys(where, step.get("with", {}), WITH.get(action, set()))
    elif "${{" in step["run"]:
        find(where, "an expression in a script lets its value run commands: give it as env")
    else:
        check_shell(where, step["run"])


def check_github(flow: Any) -> None:
    check_keys(GITHUB.name, flow, TOP)
    inputs = flow["on"]["workflow_call"]["inputs"]
    for name, one in inputs.items():
        check_keys(f"input {name}", one, INPUT)
        if one.get("type") not in ("string", "boolean", "number") or "description" not in one:
            find(f"input {name}", "it needs a type and a description")
        if ("default" in one) == (one.get("required") == "true"):
            find(f"input {name}", "it is either required or has a default")
    text = GITHUB.read_text(encoding="utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    for name in sorted(used ^ set(inputs)):
        find(GITHUB.name, f"the input {name} is not {'declared' if name in used else 'used'}")
    for name, job in flow["jobs"].items():
        check_keys(f"job {name}", job, JOB)
        for need in [job["needs"]] if "needs" in job else []:
            if need not in flow["jobs"]:
                find(f"job {name}", f"there is no job {need}")
        for number, step in enumerate(job["steps"], 1):
            check_step(f"job {name}, step {number}", step)


def check_gitlab(flow: Any) -> None:
    for name, job in flow.items():
        if name == "variables":
            continue
        check_keys(f"job {name}", job, LAB_JOB)
        check_keys(f"job {name}, artifacts", job["artifacts"], ARTIFACTS)
        for line in job["script"]:
            if not isinstance(line, str):
                find(f"job {name}", f"a line of its script is read as {line!r}: quote it")
        check_shell(f"job {name}", "\n".join(map(str, job["script"])) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rehearse", nargs="?", const="both", choices=("both", "github", "gitlab"),
                        help="run each job's shell steps, too, of both pipelines or of one")
    options = parser.parse_args()
    try:
        github, gitlab = load(GITHUB), load(GITLAB)
        schemas = check_schemas()
    except (OSError, yaml.YAMLError) as error:
        print(f"workflows: {error}", file=sys.stderr)
        return 2
    check_github(github)
    check_gitlab(gitlab)
    for kind, flow in (("GitHub", github), ("GitLab", gitlab)):
        if options.rehearse in ("both", kind.lower()) and not findings:
            findings.extend(rehearsal.rehearse(kind, flow))
    rehearsed = f", {options.rehearse} rehearsed" if options.rehearse else ""
    print("\n".join(findings) if findings else f"summary: 2 pipelines, {schemas}{rehearsed}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
