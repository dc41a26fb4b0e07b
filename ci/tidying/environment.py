"""Every environment variable that the project reads or sets, compared with the page of them.

A variable is a text of C or Python that is such a name as a whole ("TOLLENS_SEED"), a name that C
gives to getenv or Python to os.environ, or $TOLLENS_SEED of a shell script. The page is
runtime/ENVIRONMENT.md: its first column names one or several variables in backticks. It must list
each, and list none that no file names.
"""

import pathlib
import re
from collections.abc import Iterator, Mapping

PAGE = "runtime/ENVIRONMENT.md"
OURS = r"TOLLENS_[A-Z0-9_]*[A-Z0-9]"
# C also defines one name as a macro, and writes names before a value: "TOLLENS_SEED=%s".
IN_C = (re.compile(rf'"({OURS})(?:=[^"\n]*)?"'), re.compile(r'\bgetenv\(\s*"(\w+)"'),
        re.compile(r'"(NVTX_INJECTION64_PATH)"'))
IN_PYTHON = (re.compile(rf"""["']({OURS})["']"""),
             re.compile(r"""\bos\.(?:environ(?:\.get\(|\.pop\(|\[)|getenv\()\s*["'](\w+)["']"""))
IN_SHELL = (re.compile(rf"\$\{{?({OURS})\b"),)
ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")


def patterns_for(path: str, text: str) -> tuple[re.Pattern[str], ...]:
    suffix = pathlib.PurePosixPath(path).suffix
    if suffix in (".c", ".h", ".cu"):
        return IN_C
    if suffix == ".py":
        return IN_PYTHON
    return IN_SHELL if re.match(r"#!.*\b(?:ba|da)?sh\b", text) else ()


def used(texts: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """Where each variable is first named."""
    found: dict[str, tuple[str, int]] = {}
    for path, text in sorted(texts.items()):
        if path.startswith(("ci/tidying/environment", "ci/tidying/code_checks")):
            continue
        for pattern in patterns_for(path, text):
            for match in pattern.finditer(text):
                found.setdefault(match.group(1),
                                 (path, text.count("\n", 0, match.start()) + 1))
    return found


def listed(page: str) -> list[str]:
    return [name for row in ROW.findall(page) for name in NAME.findall(row)]


def check(texts: Mapping[str, str], page: str) -> Iterator[str]:
    """A line for each variable that the page lacks, lists twice, or lists without a use."""
    found, names = used(texts), listed(page)
    for name, (path, line) in sorted(found.items()):
        if name not in names:
            yield f"{path}:{line}: {PAGE} does not list the environment variable {name}"
    for name in sorted(set(names)):
        if name not in found:
            yield f"{PAGE}: no file uses the environment variable {name}"
        if names.count(name) > 1:
            yield f"{PAGE}: {name} is listed twice"


def findings(files: Mapping[str, pathlib.Path]) -> Iterator[str]:
    """What is wrong in these files, among which the page is."""
    texts = {name: path.read_text(encoding="utf-8", errors="replace")
             for name, path in files.items()
             if path.suffix in (".c", ".h", ".cu", ".py", "", ".sbatch")}
    yield from check(texts, files[PAGE].read_text(encoding="utf-8"))
