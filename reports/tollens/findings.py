"""What the soft device found: the lines of `tollens soft --report FILE`."""

import json
import os
import pathlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """A mistake that the soft device noticed, or a note that needs no change."""

    kind: str                      # such as "illegal address", "data race", "leak"
    severity: str                  # "error", "warning", "note" or "suppressed"
    kernel: str                    # "": it was found outside of kernels
    source: str                    # the line, as file:line, where the program has line tables
    ptx_line: int                  # 0: none
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    detail: str
    inlined_at: str = ""           # the calls that source was inlined into: "file:line, file:line"

    @property
    def counts(self) -> bool:
        """Whether it asks for a change: not a note, and not suppressed."""
        return self.severity in ("error", "warning")

    @property
    def place(self) -> str:
        """Where it happened, as the program's messages say it."""
        if not self.kernel:
            return f"at {self.source}" if self.source else ""
        numbers = [",".join(str(number) for number in part) for part in (self.block, self.thread)]
        line = self.source or f"PTX line {self.ptx_line}"
        calls = f", inlined at {self.inlined_at}" if self.inlined_at else ""
        return (f"in kernel {self.kernel}, block ({numbers[0]}), thread ({numbers[1]}), at {line}"
                f"{calls}")

    def __str__(self) -> str:
        return f"{self.kind}{' ' if self.place else ''}{self.place}: {self.detail}"


def triple(values: Any) -> tuple[int, int, int]:
    x, y, z = values
    return int(x), int(y), int(z)


def of_line(text: str) -> Finding:
    """ValueError: the line is none of a report."""
    try:
        row = json.loads(text)
        return Finding(str(row["kind"]), str(row["severity"]), str(row["kernel"]),
                       str(row["source"]), int(row["ptx_line"]), triple(row["block"]),
                       triple(row["thread"]), str(row["detail"]),
                       str(row.get("inlined_at", "")))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this is not a line of a report of tollens soft: {text[:80]}") from error


def read_findings(path: str | os.PathLike[str], *, notes: bool = False) -> list[Finding]:
    """The findings of a report in their order; with notes=True, the notes among them, too.

    ValueError: a line is none of a report. OSError: the file could not be read.
    """
    lines = pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return [one for one in map(of_line, lines) if one.counts or notes and one.severity == "note"]
