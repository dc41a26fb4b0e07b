"""Rehearses the pipelines that other repositories use: runs the shell steps of their jobs on the
soft device.

Each play has its own folder, which already has the files that an action or a service would move.
The plays use the example plugin on one runner, the plugin with a bug on two runners, and no plugin,
so that the claims are the runtime's own. A job that fans out runs once per runner.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = "claims/make_plugin sums.so"
OWN = "H8"  # the quickest of the runtime's own claims


@dataclass
class Play:
    """What a caller of the pipeline gives, and what each lane's exit code must be."""

    build: str        # "": no plugin
    runners: int
    expected: int
    options: str = ""

    @property
    def lanes(self) -> list[str]:
        return ["cpu", *["gpu"] * self.runners, *["merge"] * (self.runners > 1)]


GITHUB = (Play(PLUGIN, 1, 0), Play(f"{PLUGIN} -DREDUCE_SUM_LOSES_TAIL", 2, 1),
          Play("", 2, 0, OWN))
# Both services run the same lanes, so only GitHub's plays have a plugin whose claim survives.
GITLAB = (Play(f"{PLUGIN} -DREDUCE_SUM_LOSES_TAIL", 1, 1), Play("", 2, 0, OWN))


def value_of(expression: str, given: dict[str, str], index: int) -> str:
    """The value of an expression in env, which may only name an input or the job's number."""
    name = re.fullmatch(r"\$\{\{ (?:inputs\.([\w-]+)|strategy\.job-index) \}\}", expression)
    if not name:
        return expression
    return given[name.group(1)] if name.group(1) else str(index)


def applies(condition: str, given: dict[str, str]) -> bool:
    """Whether a condition holds; it may have always() and inputs that are not empty."""
    return all(any(given[name] for name in re.findall(r"inputs\.([\w-]+) != ''", part))
               for part in condition.split(" && ") if part != "always()")


def run(where: str, script: str, folder: pathlib.Path, env: dict[str, str]) -> int:
    """Runs a step as a service does: it ends when a command fails."""
    said = subprocess.run(["sh", "-e", "-c", script], cwd=folder, env=env, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with open(folder / "said.txt", "a", encoding="utf-8") as log:
        log.write(f"--- {where}\n{said.stdout}")
    return said.returncode


def play_github(flow: Any, folder: pathlib.Path, play: Play, env: dict[str, str],
                found: list[str]) -> list[int]:
    """The codes of attacks and the merge."""
    given = {name: str(one.get("default", "")) for name, one in
             flow["on"]["workflow_call"]["inputs"].items()}
    runners = [["gpu", str(at)] for at in range(play.runners)]
    given |= {"build": play.build, "plugin": "sums.so" if play.build else "",
              "options": play.options}
    given |= {"gpu-runner": json.dumps(runners[0])} if play.runners == 1 else \
        {"gpu-runners": json.dumps(runners)}
    env = env | {"RUNNER_TEMP": str(folder / "temp"), "GITHUB_ACTIONS": "true",
                 "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    codes = []
    for name, job in flow["jobs"].items():
        if not applies(job.get("if", "always()"), given):
            continue
        for index in range(play.runners if "strategy" in job else 1):
            # Another runner's results are not on this one.
            hidden = [path.rename(folder / f".{path.name}") for path in
                      folder.glob("tollens-gpu-*") if "strategy" in job]
            for step in (step for step in job["steps"] if "run" in step):
                if not applies(step.get("if", "always()"), given):
                    continue
                own = {key: value_of(text, given, index)
                       for key, text in step.get("env", {}).items()}
                own["RUNNER_NAME"] = f"a runner/{index}"
                code = run(f"{name} {index}: {step['name']}", step["run"], folder, env | own)
                if step["name"] in ("Attack", "Merge"):
                    codes.append(code)
                elif code != 0:
                    found.append(f"rehearsal of job {name}: '{step['name']}' ended with {code}")
            for path in hidden:
                path.rename(folder / path.name.removeprefix("."))
    return codes


def play_gitlab(flow: Any, folder: pathlib.Path, play: Play, env: dict[str, str]) -> list[int]:
    env = env | flow["variables"] | {
        "TOLLENS_BUILD": play.build, "TOLLENS_PLUGIN": "sums.so" if play.build else "",
        "TOLLENS_URL": "nowhere", "TOLLENS_OPTIONS": play.options,
        "TOLLENS_RUNNERS": str(play.runners)}
    codes = []
    for name, job in flow.items():
        if name == "variables" or (name == ".tollens-fleet" and play.runners == 1):
            continue
        for index in range(1, 1 + (play.runners if name == ".tollens-gpu" else 1)):
            own = {"CI_NODE_INDEX": str(index)} if play.runners > 1 else {}
            hidden = [path.rename(folder / f".{path.name}") for path in
                      folder.glob("tollens-gpu-*") if name == ".tollens-gpu"]
            own["CI_RUNNER_DESCRIPTION"] = f"runner {index}"
            codes.append(run(f"{name} {index}", "\n".join(job["script"]), folder, env | own))
            for path in hidden:
                path.rename(folder / path.name.removeprefix("."))
    return codes


def check_merged(kind: str, folder: pathlib.Path, play: Play) -> list[str]:
    merged = json.loads((folder / "tollens-fleet/merge.json").read_text(encoding="utf-8"))
    found = []
    if [len(merged["machines"]), merged["missing"], merged["refused"]] != [play.runners, [], []]:
        found.append(f"{kind}: the merge has not each runner once: {merged['machines']}")
    if [claim["id"] for claim in merged["claims"]] != [OWN if not play.build else "SUM"]:
        found.append(f"{kind}: the merge has other claims: {merged['claims']}")
    return found


def check_play(kind: str, folder: pathlib.Path, play: Play, codes: list[int]) -> list[str]:
    said = (folder / "said.txt").read_text(encoding="utf-8")
    if codes != [play.expected] * len(play.lanes):
        return [f"{kind}: the lanes {play.lanes} ended with {codes}, not {play.expected}:\n{said}"]
    found = []
    first = 0 if kind == "GitHub" else 1
    for lane in ("cpu", *(f"gpu-{at}" for at in range(first, first + play.runners))):
        if not (folder / f"tollens-{lane}" / "evidence/junit.xml").is_file():
            found.append(f"{kind}: tollens-{lane} has no junit.xml")
    if play.runners > 1:
        found += check_merged(kind, folder, play)
    if kind == "GitHub":
        told = (folder / "summary.md").read_text(encoding="utf-8")
        errors = (1 + play.runners) * play.expected
        if said.count("::error title=SUM falsified::") != errors:
            found.append(f"{kind}: the annotations are not {errors}:\n{said}")
        if told.count("# Tollens: ") != 1 + play.runners or \
                told.count(f"# {play.runners} runs of {play.runners} machines") != \
                (play.runners > 1):
            found.append(f"{kind}: the job's summary is not each lane's:\n{told}")
    return found


def rehearse(kind: str, flow: Any) -> list[str]:
    """One sentence per fault."""
    env = {key: text for key, text in os.environ.items()
           if not key.startswith(("TOLLENS_", "GITHUB_", "BUILDKITE", "RUNNER_", "CI_"))}
    env["TOLLENS_DEVICE"] = "soft"
    env["TOLLENS_CUBINS"] = "no"  # the soft device loads PTX
    found: list[str] = []
    for play in GITHUB if kind == "GitHub" else GITLAB:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / ".tollens").symlink_to(ROOT)
            shutil.copytree(ROOT / "hypotheses/example_plugin", folder / "claims")
            codes = play_github(flow, folder, play, env, found) if kind == "GitHub" else \
                play_gitlab(flow, folder, play, env)
            found += check_play(kind, folder, play, codes)
    return found
