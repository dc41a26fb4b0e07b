#!/usr/bin/env python3
"""Style as a test: what a reader should be able to rely on and no compiler checks.

    ci/tidy.py

Includes go down the floors only (floors.py); files stay small, their names unique, their lines
short; generated files are what their program would write; the runtime does not ask which driver it
has. In tidying/: no stubs (stubs.py); retired names and idioms do not return, links and paths in
backticks lead somewhere, and measured figures are on generated pages only (prose.py); the
repository keeps its budgets (budgets.py); the driver is called only where it may be (raw_calls.py);
static functions have names of their own (static_names.py); the page of environment variables is
complete (environment.py).
Prints one line per finding, and exits 1 if there is any.
"""

import pathlib
import re
import subprocess
import sys

import floors
import ptx_sources
from tidying import budgets, environment, prose, raw_calls, static_names, stubs

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE_MAX = 100
LINES_MAX = {".c": 500, ".h": 500, ".cu": 500, ".py": 250}
# One description of the build, which reads from top to bottom.
LONGER = {"configure.py": 770}

TOP = {"LICENSE", "README.md", "build.ninja", "ci", "configure.py", "fixtures", "hypotheses",
       "kernels", "reports", "runtime"}
# Names that may occur once a folder.
REPEATED = {"README.md", "__init__.py", "__main__.py"}

findings: list[str] = []


def find(path: pathlib.Path | str, line: int, text: str) -> None:
    findings.append(f"{path}:{line}: {text}" if line else f"{path}: {text}")


def is_runtime(path: pathlib.Path) -> bool:
    return path.parts[:2] == ("runtime", "driver") and path.parts[2] not in ("test", "bench")


def check_text(path: pathlib.Path, known: list[str]) -> None:
    try:
        whole = (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        find(path, 0, "this is not UTF-8")
        return
    lines = whole.split("\n")
    for look in (prose.idioms, prose.figures, prose.gone_names):
        findings.extend(look(path, whole))
    findings.extend(prose.dead_paths(path, whole, known))
    most = LONGER.get(str(path), LINES_MAX.get(path.suffix))
    if most and len(lines) - 1 > most:
        find(path, 0, f"{len(lines) - 1} lines; at most {most}: split it by its ideas")
    is_page = path.suffix == ".md"
    for number, text in enumerate(lines, 1):
        if len(text) > LINE_MAX and not is_page:
            find(path, number, f"{len(text)} columns; at most {LINE_MAX}")
        if "\t" in text and path.name != "rules":  # a makefile, of Debian's
            find(path, number, "a tab")
        if not is_page and re.search(r"\b(TO" r"DO|FIX" r"ME)\b", text):
            find(path, number, "a debt that is admitted: pay it, or say what is so")
        if text != text.rstrip() and not is_page:
            find(path, number, "blanks at the end")
        if is_runtime(path) and path.suffix == ".c" and re.search(
                r'\bif\b.*("soft|is_soft|soft_device)', text):
            find(path, number, "the runtime asks which driver it has")
    if lines[-1] != "":
        find(path, len(lines), "no end of line")
    stubs_in = {".c": stubs.in_c, ".py": stubs.in_python}.get(path.suffix)
    for number, name in stubs_in(whole) if stubs_in and not path.stem.endswith("_test") else []:
        find(path, number, f"{name} does nothing with what it is given: do it, or say in "
                           "ci/tidying/stubs.py why it is right")


def is_ours(path: pathlib.Path) -> bool:
    """Whether a person writes it. Fixtures and published evidence stay as they were made."""
    text = path.suffix in (".c", ".h", ".def", ".cu", ".py", ".toml", ".md", "") or (
        path.name == ".clang-tidy")
    made = path.parts[0] == "fixtures" and path.suffix != ".md"
    published = path.parts[:2] == ("reports", "published")
    return text and not made and not published and path.name not in ("LICENSE", "COMMIT")


def check_programs() -> None:
    run = subprocess.run([sys.executable, "configure.py", "--check"], cwd=ROOT,
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        find("configure.py", 0, (run.stdout + run.stderr).strip().split("\n")[-1])
    findings.extend(f"{path}: {what}" for path, what in ptx_sources.findings().items())


def main() -> int:
    if sys.argv[1:]:
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    names: dict[str, pathlib.Path] = {}
    tree = budgets.tree()
    known = sorted(tree)
    for path in map(pathlib.Path, known):
        if path.parts[0] not in TOP and not path.parts[0].startswith("."):
            find(path, 0, "the top level is fixed")
        if path.suffix == ".md":
            text = tree[str(path)].read_text(encoding="utf-8")
            findings.extend(prose.broken_links(path, text, ROOT))
        if not is_ours(path):
            continue
        if path.name in names and path.name not in REPEATED:
            find(path, 0, f"there is {names[path.name]} already")
        names[path.name] = path
        check_text(path, known)
    check_programs()
    texts = floors.read_tree()
    findings.extend(floors.check(texts, floors.read_readmes()))
    findings.extend(raw_calls.check(texts))
    findings.extend(static_names.check(texts))
    findings.extend(environment.findings(tree))
    findings.extend(budgets.findings(tree))
    print("\n".join(findings) if findings else "tidy: nothing found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
