#!/usr/bin/env python3
"""Times what PyTorch has of bench-kernels' problems (torch_problems.py), in a process of its own.

    bench-kernels --peer "python3 torch_peer.py"

It reads lines and answers each, as bench_peer.h says. Without PyTorch it says that it cannot.
Without a GPU it times the CPU, and says so: that shows the protocol. Tried with PyTorch 2.11.
"""

import os
import sys
from typing import Any, TextIO

try:
    import torch_problems
    MISSING = ""
except ImportError as error:
    MISSING = f"PyTorch: {error}"


def prepare(words: list[str]) -> tuple[Any, str]:
    """The problem, and the answer."""
    if MISSING:
        return None, f"cannot {MISSING}"
    try:
        problem = torch_problems.find(words)
        return problem, f"ready {problem.name}"
    except (torch_problems.Cannot, RuntimeError) as error:
        return None, f"cannot {error}"


def serve(lines: TextIO, answers: TextIO) -> None:
    problem: Any = None

    def answer(text: str) -> None:
        print(text.splitlines()[0].encode("ascii", "replace").decode()[:200], file=answers,
              flush=True)

    for line in lines:
        match line.split():
            case ["quit"]:
                return
            case ["prepare", *words]:
                problem = None  # its memory is free before the next takes some
                problem, text = prepare(words)
                answer(text)
            case ["batch", launches] if problem:
                answer(f"{problem.batch(int(launches)):.6f}")
            case ["check"] if problem:
                wrong = problem.check()
                answer(f"wrong {wrong}" if wrong else "right")
            case _:
                answer(f"not understood: {line.strip()}")


def main() -> int:
    if sys.argv[1:]:
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what libraries print is no answer
    serve(sys.stdin, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
