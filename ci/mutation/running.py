"""Runs test programs with limits, and says what came of it."""

import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
from typing import TextIO

QUIET_NINJA = str(pathlib.Path(__file__).resolve().parents[1] / "quiet_ninja")
FILE_BYTES_MAX = 1 << 30  # the largest file that a mutant may write
CROWD = 20  # the limit by the clock, in times of the limit in CPU seconds: tests may sleep
SUITE_S = 600.0  # the limit of a suite without a mutant
PATIENCE_S, PATIENCE = 10.0, 5  # the limit with one: this, and times what it takes without
SUITE = re.compile(r"^\w*Test\(\s*(\w+)\s*,", re.M)
SWEEP = "kernel-sweep"
WRONG = re.compile(r"^WRONG .*", re.M)


class MutateError(Exception):
    """An error, as the sentence that the user sees."""


@dataclasses.dataclass(frozen=True)
class Finding:
    kind: str  # passed, killed, timeout
    what: str  # the test that failed, the kind of the soft device's report, or the exit code
    seconds: float  # CPU seconds


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def say(text: str) -> None:
    print(text, flush=True)


def locked(folder: pathlib.Path) -> TextIO:
    """The open file whose lock keeps another ci/mutate out of the folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise MutateError(f"another ci/mutate is at work in {folder}") from error
    return lock


def ninja(root: pathlib.Path, targets: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([QUIET_NINJA, *targets], cwd=root, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)


def build(root: pathlib.Path, targets: list[str]) -> None:
    """Builds the targets from the unchanged sources."""
    done = ninja(root, targets)
    if done.returncode != 0:
        raise MutateError("the tree does not build, even without a mutant; ci/setup check installs "
                          f"what it needs:\n{done.stdout[-2000:]}")


def run(root: pathlib.Path, command: list[str], environment: dict[str, str],
        limit_s: float) -> tuple[Finding, str]:
    """Runs a program of tests; what came of it, and its output. The limit is in CPU seconds.
    {temporary} in the environment is a folder of this run."""
    before = spent_s()
    with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as temporary:
        more = {name: value.replace("{temporary}", temporary)
                for name, value in environment.items()} | {"TMPDIR": temporary}
        code, output = _run_limited(root, command, more, limit_s)
        seconds = spent_s() - before
        report = pathlib.Path(more.get("TOLLENS_SOFT_REPORT", os.devnull))
        reports = report.read_text(errors="replace") if report.exists() else ""
    if code == 0:
        return Finding("passed", "", seconds), output
    if code is None or seconds >= limit_s:
        return Finding("timeout", "ran too long", seconds), output
    return Finding("killed", _what(reports, output, code), seconds), output


def words(program: str, what: str) -> list[str]:
    """The command that runs a suite of Criterion's, or a case of kernel-sweep."""
    if program.endswith(SWEEP):
        return [program, "--library", "build/libtollens-soft.so", "--filter", what]
    return [program, "--fail-fast", "-j1", "--filter", f"{what}/*"]


class Suites:
    """The suites of Criterion's programs and the cases of kernel-sweep in a build, each called
    "program suite", and the CPU seconds of each by itself."""

    def __init__(self, root: pathlib.Path, built: str, kept: pathlib.Path,
                 environment: dict[str, str]) -> None:
        self.root, self.built, self.kept, self.environment = root, built, kept, environment
        self.homes: dict[str, set[str]] = {}  # of each suite, the files of its tests
        self.alone: dict[str, list[str | float | None]] = {}  # stamp, seconds; None: it fails
        for path in sorted(root.rglob("*_test.c")):
            file = str(path.relative_to(root))
            for suite in SUITE.findall(path.read_text()) if not file.startswith("build/") else ():
                self.homes.setdefault(suite, set()).add(file)
        if kept.exists():
            self.alone = json.loads(kept.read_text())

    def of(self, program: str) -> list[str]:
        listed = subprocess.run([f"{self.built}/{program}", "--list"], cwd=self.root, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        return [f"{program} {suite}" for suite in re.findall(r"^(\w+): \d+ tests?", listed.stdout,
                                                            re.M)]

    def stamp(self, name: str) -> str:
        """Changes where one of its tests does; without tests in a file, where the program does."""
        program, _, suite = name.partition(" ")
        files = sorted(self.homes.get(suite, ())) or [f"{self.built}/{program}"]
        return digest(b"\0".join((self.root / file).read_bytes() for file in files))

    def near(self, suite: str, file: str) -> int:
        """0 for the suites of a source's own tests, 1 for those of its folder, 2 for others."""
        stem, folder = file.rpartition(".")[0], file.rpartition("/")[0]
        homes = self.homes.get(suite, set())
        return 0 if f"{stem}_test.c" in homes else 2 - any(
            home.rpartition("/")[0] == folder for home in homes)

    def alone_s(self, name: str) -> float | None:
        """Without a mutant; None where it does not pass."""
        stamp = self.stamp(name)
        if self.alone.get(name, [""])[0] != stamp:
            found = self._run(self.built, name, SUITE_S)
            self.alone[name] = [stamp, found.seconds if found.kind == "passed" else None]
            if found.kind != "passed":
                say(f"  {name} is left out: without a mutant, {found.what}")
            self.kept.write_text(json.dumps(self.alone))
        return self.alone[name][1]  # type: ignore[return-value]

    def ask(self, folder: str, name: str) -> Finding | None:
        """What comes of it with the programs of a folder; None: it is left out."""
        alone_s = self.alone_s(name)
        return None if alone_s is None else self._run(folder, name,
                                                      PATIENCE_S + PATIENCE * alone_s)

    def _run(self, folder: str, name: str, limit_s: float) -> Finding:
        program, _, suite = name.partition(" ")
        return run(self.root, words(f"{folder}/{program}", suite), self.environment, limit_s)[0]


def spent_s() -> float:
    """The CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run_limited(root: pathlib.Path, command: list[str], environment: dict[str, str],
                 limit_s: float) -> tuple[int | None, str]:
    """A program's exit code, None if it took too long, and its output; ends what it started."""
    with subprocess.Popen(
            command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env={**os.environ, **environment}, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
            preexec_fn=lambda: _limit(limit_s)) as process:
        try:
            output, _ = process.communicate(timeout=CROWD * limit_s)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def _limit(cpu_s: float) -> None:
    """A mutant may allocate all memory, and may write or compute without end."""
    whole_s = int(cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole_s, whole_s + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass  # the kernel chooses by itself which process to end


def _what(reports: str, output: str, code: int) -> str:
    for line in reports.split("\n"):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if found.get("severity") == "error":
            return str(found["kind"])
    wrong = WRONG.search(output)
    if wrong:
        return "wrong result" if "bytes written out of bounds" in wrong[0] else "refused launch"
    failed = re.search(r"\[FAIL\] (?:\x1b\[[\d;]*m)*(\w+)::(\w+)", output)
    return f"{failed[1]}/{failed[2]}" if failed else f"exit code {code}"
