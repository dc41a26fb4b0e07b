"""The answer of a command to a program: one JSON object, as hypotheses/JSON.md has it."""

import argparse
import json
import sys
from typing import Any


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
    return 2
