"""Runs tests of a program that a mutant may be in, and says what came of it."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator

from mutation.workshop import Outcome, Sanitizer, Tree

FILE_BYTES_MAX = 1 << 30  # what a mutant may write to one file


def _humble(each_s: float) -> None:
    """For the process that runs tests: a mutant may want all memory, and may write or compute
    without end."""
    whole_s = int(each_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole_s, whole_s + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass  # the system chooses itself which process to end


@contextlib.contextmanager
def at_once(jobs: int) -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    """So many threads. Who interrupts waits for what has begun, and for nothing else."""
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def list_tests(tree: Tree, program: str) -> list[str]:
    """As "suite/test", which is also how Criterion selects one."""
    listed = subprocess.run([f"{tree.folder}/{program}", "--list"], cwd=tree.root, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found, suite = [], ""
    for line in listed.stdout.split("\n"):
        heading = re.match(r"(\w+): \d+ tests?", line)
        name = re.search(r"── (\w+)", line)
        if heading:
            suite = heading[1]
        elif name:
            found.append(f"{suite}/{name[1]}")
    return found


def run_tests(tree: Tree, folder: str, program: str, tests: list[str], limit_s: float,
              more: dict[str, str] | None = None, sanitizer: Sanitizer | None = None,
              each_s: float = 0) -> Outcome:
    """Tests of one program, until the first that fails. The limit is of the time that all may take
    on a free machine; each_s, of the processor's seconds of a process, which is a test: as long as
    all, if 0. More: environment."""
    begin = time.monotonic()
    words = [f"{folder}/{program}"]
    if sanitizer is None or sanitizer.criterion:
        words += ["--fail-fast", "-j1", "--filter", f"@({'|'.join(tests)})"]
    with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as temporary:
        reports = sanitizer.environment.items() if sanitizer else ()
        added = {name: value.replace("{temporary}", temporary) for name, value in reports}
        code, output = run_humbly(tree, words, {"TMPDIR": temporary, **added, **(more or {})},
                                  limit_s, each_s or limit_s)
        verdict = "timeout" if code is None else "failed" if code else "passed"
        if verdict == "failed" and time.monotonic() - begin >= (each_s or limit_s):
            verdict = "timeout"  # a process was ended, for its seconds
        if sanitizer and verdict == "passed" and _reported(sanitizer, pathlib.Path(temporary)):
            verdict = "failed"
    what = failed_test(output) or (
        tests[0] if len(tests) == 1 else f"one of {tests[0]} to {tests[-1]}")
    return Outcome(verdict, what, time.monotonic() - begin)


def failed_test(output: str) -> str:
    """The first that Criterion says failed; none: ""."""
    found = re.search(r"\[FAIL\] (?:\x1b\[[\d;]*m)*(\w+)::(\w+)", output)
    return f"{found[1]}/{found[2]}" if found else ""


def run_humbly(tree: Tree, words: list[str], more: dict[str, str], limit_s: float,
               each_s: float) -> tuple[int | None, str]:
    """A program's exit code, None if it took too long, and its output; ends what it started. Limits
    as those of run_tests."""
    with subprocess.Popen(
            words, cwd=tree.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env={**os.environ, **tree.environment, **more}, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
            preexec_fn=lambda: _humble(each_s)) as process:
        try:
            output, _ = process.communicate(timeout=limit_s * _crowd())
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            _end(process)


def _crowd() -> float:
    """How many times longer everything takes while so much else wants the processors."""
    return min(max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), 3.0)


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
