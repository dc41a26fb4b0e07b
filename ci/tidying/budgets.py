#!/usr/bin/env python3
"""What the repository may weigh, for ci/tidy.py: files, words and lines that a reader meets.

    ci/tidying/budgets.py    prints the table; exit code 1 if a budget is exceeded

Generated files and published evidence do not count. A budget is met by taking away and joining,
never by longer lines.
"""

import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = ("build.ninja", "ci/ninja/", "fixtures/ptx/kernels/", "fixtures/ptx/corpus/",
        "fixtures/ptx/sources.sha256", "hypotheses/REQUIREMENTS.md", "reports/RESULTS.md",
        "kernels/PERFORMANCE.md")
PUBLISHED = "reports/published/"
README_LINES = 150


class Budget(NamedTuple):
    name: str
    most: int
    measure: Callable[[dict[str, pathlib.Path]], int]


def lines(path: pathlib.Path) -> int:
    return path.read_bytes().count(b"\n")


def words(path: pathlib.Path) -> int:
    return len(path.read_text(encoding="utf-8").split())


def megabytes(files: dict[str, pathlib.Path]) -> int:
    return -(-sum(path.stat().st_size for path in files.values()) // 1_000_000)


def pages(files: dict[str, pathlib.Path]) -> list[pathlib.Path]:
    return [path for name, path in files.items() if name.endswith(".md")
            and not name.startswith((PUBLISHED, *MADE))]


def is_script(name: str, path: pathlib.Path) -> bool:
    return name.endswith(".py") or ("." not in name.rpartition("/")[2]
                                    and path.read_bytes().startswith(b"#!"))


def scripts(files: dict[str, pathlib.Path]) -> int:
    return sum(lines(path) for name, path in files.items()
               if name.startswith("ci/") and is_script(name, path))


BUDGETS = (
    Budget("megabytes of the work tree", 40, megabytes),
    Budget("files outside published evidence", 2900, lambda files: sum(
        not name.startswith((PUBLISHED, *MADE)) for name in files)),
    Budget("words of Markdown", 45_000, lambda files: sum(map(words, pages(files)))),
    Budget("lines of README.md", 120, lambda files: lines(files["README.md"])),
    Budget("words of ci/CHANGELOG.md", 1500, lambda files: words(files["ci/CHANGELOG.md"])),
    Budget("lines of Python and shell in ci/", 13_000, scripts),
)


def tree(root: pathlib.Path = ROOT) -> dict[str, pathlib.Path]:
    """What git knows or would know, by its name."""
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0") if listed.returncode == 0 else [
        path.relative_to(root).as_posix() for path in root.rglob("*")]
    return {name: root / name for name in names if name and (root / name).is_file()}


def findings(files: dict[str, pathlib.Path]) -> list[str]:
    found = [f"{budget.measure(files)} {budget.name}; at most {budget.most}"
             for budget in BUDGETS if budget.measure(files) > budget.most]
    for name, path in files.items():
        if name.endswith("/README.md") and not name.startswith(PUBLISHED):
            if lines(path) > README_LINES:
                found.append(f"{name}: {lines(path)} lines; at most {README_LINES}")
    return found


def main() -> int:
    if sys.argv[1:]:
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    files = tree()
    for budget in BUDGETS:
        print(f"{budget.measure(files):7} of {budget.most:6}  {budget.name}")
    found = findings(files)
    print("\n".join(found) if found else "budgets: all met")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
