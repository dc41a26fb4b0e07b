"""Static functions carry the noun of their file (ci/STYLE.md): no name is defined in two files, so
that grep, gdb and flame graphs can tell all functions apart. Tests and examples are programs of
their own and do not count.
"""

import re
from collections.abc import Iterator, Mapping

DEFINED = re.compile(r"^(?:TOL_\w+ )?static (?:inline )?(?:[\w ]+?[ *]+)(\w+)\([^;]*\)\s*\{", re.M)
APART = re.compile(r"_(?:test|scene)\.c$|/(?:test|examples|example_plugin)/")


def check(texts: Mapping[str, str]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for path, text in texts.items():
        if not path.endswith(".c") or APART.search(path):
            continue
        for name in sorted(set(DEFINED.findall(text)) - {"main"}):
            other = seen.setdefault(name, path)
            if other != path:
                yield f"{path}: {other} has a static function {name} too: add the file's noun"
