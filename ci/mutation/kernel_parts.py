"""What the kernels of the library are made of, and which tests run them."""

import os
import pathlib
import re

from building import kernel_sources

INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)
SUITE = re.compile(r"^Test\((\w+),", re.M)
NUMBER = re.compile(r"_\d")
# Some have mistakes on purpose; others are run by test-worker alone, or from the committed PTX.
LEFT_OUT = re.compile(r"planted|defects|embed|heads|read_words")


class Kernels:
    """Which files a kernel is made of, and which suites run it."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        names = [name for name in kernel_sources.KERNEL_IMAGES if not LEFT_OUT.search(name)]
        self.source = {pathlib.Path(name).name: f"kernels/{name}.cu" for name in names}
        self.parts = {name: self._parts(file) for name, file in self.source.items()}
        self.files = sorted({file for name in self.parts if self.suites([name])
                             for file in self.parts[name]})

    def _parts(self, file: str) -> list[str]:
        found: list[str] = []
        fresh = [file]
        while fresh:
            file = fresh.pop()
            if file in found:
                continue
            found.append(file)
            folder = pathlib.Path(file).parent
            for name in INCLUDE.findall((self.root / file).read_text(encoding="utf-8")):
                path = os.path.normpath(folder / name)
                if path.endswith((".cu", ".cuh")) and (self.root / path).exists():
                    fresh.append(path)
        return found

    def with_file(self, file: str) -> list[str]:
        return [name for name, parts in self.parts.items() if file in parts]

    def suites(self, names: list[str]) -> list[str]:
        """Those of these kernels' operations: of gemm_1_naive, in gemm_test.c and the like."""
        return sorted({suite for name in names for path in self._tests(name)
                       for suite in SUITE.findall(path.read_text(encoding="utf-8"))})

    def _tests(self, name: str) -> list[pathlib.Path]:
        """All of the folder where none is the operation's."""
        operation = NUMBER.split(name)[0]
        tests = list((self.root / self.source[name]).parent.glob("*_test.c"))
        return [path for path in tests if path.name.startswith(f"{operation}_")] or tests
