#!/usr/bin/env python3
"""Holds pipelines against the schemas that GitHub and GitLab publish, as check-jsonschema carries
them with it, so that no network is needed.

    ci/pipeline_schemas.py github|gitlab FILE...

Prints one line a finding, and exits 1 if there is any; 2 where there is no check-jsonschema, which
`ci/setup check` puts into build/schemas. It does not know what an expression gives, which inputs
there are, or which shell a step has: that is ci/workflows.py's.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import yaml

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build/schemas/bin/check-jsonschema"
SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}


def shown(path: pathlib.Path) -> str:
    """GitLab's schema lets a job whose name begins with a dot have anything: such a one is checked
    as the job that extends it."""
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))
    return json.dumps({str(name).removeprefix("."): job for name, job in jobs.items()})


def check(service: str, path: pathlib.Path, program: pathlib.Path = PROGRAM) -> list[str]:
    """A sentence for each finding. OSError where the program cannot be run or says nonsense."""
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
        # Where none of several forms fits, those that it fits best.
        forms = [error] if not error["has_sub_errors"] else [
            error[key] for key in ("best_match", "best_deep_match")]
        texts = [f"{form['path']}: {form['message']}" for form in forms]
        found.append(f"{path.name}, {', or '.join(dict.fromkeys(texts))}")
    if bool(found) != (said.returncode != 0):
        raise OSError(f"{program} ended with {said.returncode} and {len(found)} findings")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service", choices=sorted(SCHEMAS))
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        found = [line for path in arguments.files for line in check(arguments.service, path)]
    except (OSError, yaml.YAMLError) as error:
        print(f"pipeline_schemas: {error}", file=sys.stderr)
        return 2
    print("\n".join(found) if found else "pipeline_schemas: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
