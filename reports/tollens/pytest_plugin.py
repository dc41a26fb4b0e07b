"""pytest --tollens[=race,init]: tests on the soft device, and each finding a failure of its test.

The loader reads the library path when a process starts, so the first process only starts pytest
again under `tollens soft`, and waits. That second one looks after the setup, the call and the
teardown of each test whether the device's report has new lines; child processes write to the same
report. Kernels that still run are waited for first, so that a finding belongs to the test that
launched them. With pytest-xdist each worker has a report of its own.
"""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from typing import Any

import pytest

from .findings import Finding, of_line
from .kernels import wait_for_kernels
from .program import Missing, program_path

CHECKS = ("memory", "init", "sync", "race", "race=strict", "stream", "leak", "fatal", "continue")
STANDARD = "memory,init,sync"
FOLDER = "TOLLENS_PYTEST"            # the folder of the first process's files
REPORT = "TOLLENS_SOFT_REPORT"       # where the soft device writes its findings
PASSES_ON = signal.SIGTERM, signal.SIGHUP


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def is_checks(text: str) -> bool:
    return set(text.split(",")) <= set(CHECKS)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tollens", "CUDA tests without a GPU")
    group.addoption("--tollens", nargs="?", const=STANDARD, metavar="CHECKS",
                    help="run the tests on the soft device, where a finding fails its test; "
                         f"checks beside memory: {', '.join(CHECKS[1:])}; default: {STANDARD}")
    group.addoption("--tollens-options", default="", metavar="TEXT",
                    help="options of tollens soft, such as '--devices 2 --memory 512M'")


# ---- the first process ------------------------------------------------------------------------

def checks_of(text: str) -> str:
    """The value of --check. A path after --tollens is not part of its value."""
    if not is_checks(text):
        return STANDARD
    return text if "memory" in text.split(",") else f"memory,{text}"


def words_without_option(words: list[str]) -> list[str]:
    """A command without --tollens and its checks; a path after it stays."""
    return [word for before, word in zip(["", *words], words)
            if word != "--tollens" and not word.startswith("--tollens=") and
            not (before == "--tollens" and is_checks(word))]


def left_over(folder: pathlib.Path) -> list[Finding]:
    """Findings that belong to no test: after the last one, or when a process ended."""
    seen = {line for _, line in seen_lines(folder)}
    lines = {line: None for path in sorted(folder.glob("report*"))
             for line in path.read_text(errors="replace").splitlines() if line not in seen}
    return [one for one in map(of_line, lines) if one.counts]


def start_again(options: Any) -> int:
    """Runs this command under tollens soft. Returns the exit code."""
    # Where a parent process has ignored it, Python takes any end of a child for a success.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with tempfile.TemporaryDirectory(prefix="tollens-pytest-") as name:
        folder = pathlib.Path(name)
        command = [str(program_path()), "soft", "--check", checks_of(options.tollens),
                   "--report", str(folder / "report"), *shlex.split(options.tollens_options),
                   "--", *words_without_option(sys.orig_argv)]
        child = subprocess.Popen(command, env={**os.environ, FOLDER: name})
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child hears it by itself
        for number in PASSES_ON:
            signal.signal(number, lambda number, _: child.send_signal(number))
        code = child.wait()
        found = left_over(folder)
        for one in found:
            print(f"tollens: of no test, when a process ended: {one}", file=sys.stderr)
        return 1 if found and code == 0 else code


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    options = early_config.known_args_namespace
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if FOLDER in os.environ:
        if worker:  # before the device reads it
            os.environ[REPORT] = str(pathlib.Path(os.environ[FOLDER], f"report-{worker}"))
        return
    if options.tollens is None or REPORT in os.environ:
        return
    for word in sys.orig_argv:
        if word.startswith("--tollens=") and not is_checks(word.partition("=")[2]):
            raise pytest.UsageError(f"{word}: the checks are {', '.join(CHECKS)}")
    capture = early_config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    try:
        code = start_again(options)
    except (Missing, ValueError, OSError) as error:
        raise pytest.UsageError(f"--tollens: {error}") from error
    sys.stdout.flush()
    sys.exit(code)


# ---- the process that runs tests --------------------------------------------------------------

def seen_lines(folder: pathlib.Path) -> list[tuple[str, str]]:
    """The lines of reports that were found in tests, each after the test's name."""
    path = folder / "seen"
    if not path.exists():
        return []
    pairs = (line.partition("\t") for line in path.read_text().splitlines())
    return [(name, line) for name, _, line in pairs]


Wrapper = Generator[None, Any, None]


def fail(outcome: Any, text: str) -> None:
    """Makes what a hook did end in a failure."""
    failure = pytest.fail.Exception(text, pytrace=False)
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(failure)
    else:  # pluggy before 1.1, of Debian 12
        outcome._excinfo = (type(failure), failure, None)


class Watch:
    """Gives each finding to the test in whose setup, call or teardown it was made."""

    def __init__(self, report: pathlib.Path, folder: pathlib.Path | None) -> None:
        self.report, self.folder = report, folder
        self.offset = report.stat().st_size if report.exists() else 0
        self.broken_by = ""  # the test after which the context takes no more work
        self.count = 0

    def take(self, item: pytest.Item) -> list[Finding]:
        """What was found since the last time."""
        wait_for_kernels()
        if not self.report.exists():
            return []
        with self.report.open("rb") as file:
            file.seek(self.offset)
            new = file.read()
        new = new[:new.rfind(b"\n") + 1]
        self.offset += len(new)
        lines = new.decode(errors="replace").splitlines()
        if self.folder is not None and lines:
            self.note_seen(item.nodeid, lines)
        found = [one for one in map(of_line, lines) if one.counts]
        self.count += len(found)
        return found

    def note_seen(self, name: str, lines: list[str]) -> None:
        assert self.folder is not None
        with (self.folder / "seen").open("a") as file:
            file.write("".join(f"{name}\t{line}\n" for line in lines))
        if self.report.name != "report":  # a worker's; the summary is made of the first
            with (self.folder / "report").open("a") as file:
                file.write("".join(f"{line}\n" for line in lines))

    def judge(self, item: pytest.Item, when: str, outcome: Any) -> None:
        error = outcome.excinfo[1] if outcome.excinfo else None
        if error is not None:
            self.tell(item, when)
        found = self.take(item)
        if not found:
            return
        text = self.text(item, found)
        passed = error is None and not getattr(item, "_excinfo", None)  # unittest's failure
        if passed or isinstance(error, pytest.skip.Exception):
            fail(outcome, text)
        else:
            item.add_report_section(when, "tollens", text)

    def tell(self, item: pytest.Item, when: str) -> None:
        if self.broken_by and self.broken_by != item.nodeid:
            item.add_report_section(when, "tollens", "the device's context takes no more work "
                                    f"since an error in {self.broken_by}")

    def text(self, item: pytest.Item, found: list[Finding]) -> str:
        if any(one.severity == "error" for one in found):
            self.broken_by = self.broken_by or item.nodeid
        return "\n".join(f"tollens: {one}" for one in found)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Wrapper:
        self.judge(item, "setup", (yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Wrapper:
        self.judge(item, "call", (yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Wrapper:
        self.judge(item, "teardown", (yield))

    def pytest_report_header(self) -> str:
        checks = os.environ.get("TOLLENS_SOFT_CHECK") or STANDARD
        return f"tollens: on the soft device, checks: {checks}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        count, tests = self.count, ""
        if self.folder is not None:
            seen = [name for name, line in seen_lines(self.folder)
                    if of_line(line).counts]
            count, tests = len(seen), f" in {counted(len(set(seen)), 'test')}"
        terminalreporter.write_line(f"tollens: {counted(count, 'finding')}{tests}")


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--tollens")
    if given is not None and not is_checks(given):  # a path that came after the option
        others = config.args if config.args_source == config.ArgsSource.ARGS else []
        config.args = [given, *others]
    report, folder = os.environ.get(REPORT), os.environ.get(FOLDER)
    if report and (folder or given is not None):
        config.pluginmanager.register(
            Watch(pathlib.Path(report), pathlib.Path(folder) if folder else None), "tollens-watch")
