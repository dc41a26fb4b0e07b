#!/usr/bin/env python3
"""Whether the links of the READMEs lead somewhere, for ci/tidy.py.

    ci/tidying/links.py      prints a line for each link that is broken; exit code 1 if any is

A relative link names a file or folder that exists. A link such as [`soft_lower`](lower/lower.c)
names a function besides, and the file must contain that name.
"""

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"\[([^\]\[]+)\]\(([^)\s]+)\)")
NAME = re.compile(r"`(\w+)`")


def broken(path: pathlib.PurePath, text: str, root: pathlib.Path = ROOT) -> Iterator[str]:
    """A line for each broken link of one Markdown file, whose path is relative to root."""
    for number, line in enumerate(text.split("\n"), 1):
        for shown, target in LINK.findall(line):
            if re.match(r"[a-z]+:|#", target):
                continue
            place = (root / path).parent / target.split("#")[0]
            name = NAME.fullmatch(shown)
            if not place.exists():
                yield f"{path}:{number}: the link to {target} leads nowhere"
            elif name and place.suffix in (".c", ".h", ".py") and not re.search(
                    rf"\b{name.group(1)}\b", place.read_text(encoding="utf-8")):
                yield f"{path}:{number}: {target} has no {name.group(1)}"


def findings() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT,
                            capture_output=True, text=True, check=False).stdout.split()
    return [line for name in listed if (ROOT / name).is_file()
            for line in broken(pathlib.PurePath(name), (ROOT / name).read_text(encoding="utf-8"))]


def main() -> int:
    if sys.argv[1:]:
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    found = findings()
    print("\n".join(found) if found else "links: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
