"""The answer of a command to a program: one JSON object, as hypotheses/JSON.md has it."""

import argparse
import contextlib
import errno
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, TextIO, cast

FAILED = 2  # of every command: usage, an error, or interrupted; 1 means that something got worse


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true",
                        help="print the answer as one JSON object, an error too")


def write(command: str, members: dict[str, Any]) -> None:
    print(json.dumps({"schema": 1, "command": command, **members}, indent=2))


def complain(command: str, options: argparse.Namespace, sentence: str) -> int:
    """A sentence on stderr, and with --json on stdout too. Returns the exit code."""
    print(f"reports: {sentence}", file=sys.stderr)
    if options.json:
        write(command, {"error": sentence, "next": f"tollens help {command}", "exit_code": 2})
    return FAILED


class Plain:
    """A stream with ? in the place of control characters, except line breaks and tabs: an escape
    sequence in the name of a file could hide what was printed."""

    MARKS = {number: "?" for number in (*range(32), *range(127, 160)) if chr(number) not in "\n\t"}

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(text.translate(self.MARKS))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def exit_code(command: Callable[[], int]) -> int:
    """As run(), with plain text on stderr."""
    if sys.stderr is None:
        return run(command)
    with contextlib.redirect_stderr(cast(TextIO, Plain(sys.stderr))):
        return run(command)


def run(command: Callable[[], int]) -> int:
    """Runs a command and writes what it printed. Python's own exit code of an exception is 1, and
    that of an output that cannot be written 120: here both are FAILED."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent process may have ignored it
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("reports: interrupted", file=sys.stderr)
    except OSError as error:
        print(f"reports: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
    except Exception:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        # What is still in the buffer must not fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
