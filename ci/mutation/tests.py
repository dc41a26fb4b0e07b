"""Runs tests of a program that a mutant may be in, and says what came of it."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time

from mutation.workshop import Outcome, Sanitizer, Tree

FILE_BYTES_MAX = 1 << 30  # what a mutant may write to one file


def _humble() -> None:
    """For the process that runs tests: a mutant may want all memory, and may write without end."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass  # the system chooses itself which process to end


def run_tests(tree: Tree, folder: str, program: str, tests: list[str], limit_s: float,
              more: dict[str, str] | None = None, sanitizer: Sanitizer | None = None) -> Outcome:
    """Tests of one program, until the first that fails. More: environment."""
    begin = time.monotonic()
    words = [f"{folder}/{program}"]
    if sanitizer is None or sanitizer.criterion:
        words += ["--fail-fast", "-j1", "--filter", f"@({'|'.join(tests)})"]
    with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as temporary:
        reports = sanitizer.environment.items() if sanitizer else ()
        added = {name: value.replace("{temporary}", temporary) for name, value in reports}
        with subprocess.Popen(
                words, cwd=tree.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                env={**os.environ, **tree.environment, "TMPDIR": temporary, **added,
                     **(more or {})},
                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                preexec_fn=_humble) as process:
            try:
                output, _ = process.communicate(timeout=limit_s)
                verdict = "passed" if process.returncode == 0 else "failed"
            except subprocess.TimeoutExpired:
                output, verdict = "", "timeout"
            finally:
                _end(process)
        if sanitizer and verdict == "passed" and _reported(sanitizer, pathlib.Path(temporary)):
            verdict = "failed"
    found = re.search(r"\[FAIL\] (?:\x1b\[[\d;]*m)*(\w+)::(\w+)", output)
    what = f"{found[1]}/{found[2]}" if found else (
        tests[0] if len(tests) == 1 else f"one of {tests[0]} to {tests[-1]}")
    return Outcome(verdict, what, time.monotonic() - begin)


def _reported(sanitizer: Sanitizer, folder: pathlib.Path) -> bool:
    """Whether it wrote anything: a leak fails no test of Criterion's."""
    lines = [line for path in folder.glob("found*")
             for line in path.read_text(errors="replace").split("\n") if line.strip()]
    return any(not sanitizer.ignored or not re.search(sanitizer.ignored, line) for line in lines)


def _end(process: subprocess.Popen[str]) -> None:
    """The process and what it started, which may have survived it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
