#!/usr/bin/env python3
"""Checks the pipelines that other repositories use, as far as that is possible without their
services, and rehearses their shell steps on the soft device.

    ci/pipelines/workflows.py         the services' own schemas; inputs, needs, versions of actions;
                                      shellcheck if it is installed
    ci/pipelines/workflows.py --rehearse [github|gitlab]   also each job's steps (rehearsal.py)

check-jsonschema brings the schemas that GitHub and GitLab publish, so no network is needed;
`ci/setup check` installs it. Without it the summary says that the schemas were not checked, which
is a finding in a pipeline.

Prints one line per finding. Exit code: 0 nothing was found, 1 something was, 2 a file cannot be
read.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import rehearsal
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github/workflows/tollens.yml"
GITLAB = ROOT / "ci/tollens.gitlab-ci.yml"
PROGRAM = ROOT / "build/schemas/bin/check-jsonschema"
SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}
# The schemas do not know the options of actions.
WITH = {"actions/checkout": {"repository", "ref", "path", "persist-credentials"},
        "actions/upload-artifact": {"name", "path", "if-no-files-found", "retention-days"},
        "actions/download-artifact": {"name", "path", "pattern"}}

findings: list[str] = []


def find(where: str, text: str) -> None:
    findings.append(f"{where}: {text}")


def load(path: pathlib.Path) -> Any:
    """Every scalar is a string, as "on" is to the services."""
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)  # noqa: S506 (a safe one)


def shown(path: pathlib.Path) -> str:
    """GitLab's schema accepts anything in a job whose name begins with a dot, so such a job is
    checked without the dot."""
    jobs = load(path)
    return json.dumps({str(name).removeprefix("."): job for name, job in jobs.items()})


def check_schema(service: str, path: pathlib.Path, program: pathlib.Path = PROGRAM) -> list[str]:
    """One sentence per finding. OSError if the program does not run or gives no answer."""
    with tempfile.TemporaryDirectory() as folder:
        read = path
        if service == "gitlab":
            read = pathlib.Path(folder, "jobs.json")
            read.write_text(shown(path), encoding="utf-8")
        said = subprocess.run(
            [program, "--output-format", "json", "--builtin-schema", SCHEMAS[service], read],
            capture_output=True, text=True, check=False)
    try:
        answer = json.loads(said.stdout)
    except json.JSONDecodeError:
        raise OSError(f"{program} ended with {said.returncode}: {said.stderr.strip()}") from None
    found = [f"{path.name}: {error['message']}" for error in answer.get("parse_errors", [])]
    for error in answer["errors"]:
        # If none of several forms fits, the forms that fit best.
        forms = [error] if not error["has_sub_errors"] else [
            error[key] for key in ("best_match", "best_deep_match")]
        texts = [f"{form['path']}: {form['message']}" for form in forms]
        found.append(f"{path.name}, {', or '.join(dict.fromkeys(texts))}")
    if bool(found) != (said.returncode != 0):
        raise OSError(f"{program} ended with {said.returncode} and {len(found)} findings")
    return found


def check_schemas(program: pathlib.Path = PROGRAM) -> str:
    """What the summary says of it. Services set CI; there nothing may be left out unseen."""
    if not program.is_file():
        said = f"their schemas were not checked: there is no {program.name}; ci/setup check has it"
        if os.environ.get("CI"):
            find("schemas", said)
        return said
    for service, path in (("github", GITHUB), ("gitlab", GITLAB)):
        findings.extend(check_schema(service, path, program))
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
    if "uses" in step:
        action, _, version = step["uses"].partition("@")
        if action not in WITH or not re.fullmatch(r"v\d+", version):
            find(where, f"{step['uses']} is not an action of a known version")
        for key in sorted(set(step.get("with", {})) - WITH.get(action, set())):
            find(where, f"{action} has no option '{key}'")
    elif "${{" in step["run"]:
        find(where, "an expression in a script lets its value run commands: give it as env")
    else:
        check_shell(where, step["run"])


def check_github(flow: Any) -> None:
    inputs = flow["on"]["workflow_call"]["inputs"]
    for name, one in inputs.items():
        if "description" not in one:
            find(f"input {name}", "it needs a description")
        if ("default" in one) == (one.get("required") == "true"):
            find(f"input {name}", "it is either required or has a default")
    text = GITHUB.read_text(encoding="utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    for name in sorted(used ^ set(inputs)):
        find(GITHUB.name, f"the input {name} is not {'declared' if name in used else 'used'}")
    for name, job in flow["jobs"].items():
        for need in [job["needs"]] if "needs" in job else []:
            if need not in flow["jobs"]:
                find(f"job {name}", f"there is no job {need}")
        for number, step in enumerate(job["steps"], 1):
            check_step(f"job {name}, step {number}", step)


def check_gitlab(flow: Any) -> None:
    for name, job in flow.items():
        if name == "variables":
            continue
        for line in job["script"]:
            if not isinstance(line, str):
                find(f"job {name}", f"a line of its script is read as {line!r}: quote it")
        check_shell(f"job {name}", "\n".join(map(str, job["script"])) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", nargs="?", const="both", choices=("both", "github", "gitlab"),
                        help="also run each job's shell steps, of both pipelines or of one")
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
