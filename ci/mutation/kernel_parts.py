"""What the kernels of the library are made of, and what runs them."""

import os
import pathlib
import re

from building import kernel_sources
from mutation.workshop import digest

INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)
SUITE = re.compile(r"^Test\((\w+),", re.M)
IMAGE = re.compile(r"^IMAGE\((\w+), (\w+)\)", re.M)
NUMBER = re.compile(r"_\d")
# Some have mistakes on purpose; one only measures.
LEFT_OUT = re.compile(r"planted|defects|read_words")


class Kernels:
    """Which files a kernel is made of, which group of kernel-sweep runs it, and which suites of
    test-kernels are about its operation."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        names = [name for name in kernel_sources.KERNEL_IMAGES if not LEFT_OUT.search(name)]
        listed = (root / "kernels/sweep/sweep_images.def").read_text(encoding="utf-8")
        self.group = {name: group for group, name in IMAGE.findall(listed)}
        self.source = {pathlib.Path(name).name: f"kernels/{name}.cu" for name in names}
        self.parts = {name: self._parts(file) for name, file in self.source.items()}
        self.files = sorted({file for name, parts in self.parts.items()
                             if name in self.group or self.suites([name])
                             for file in parts if file.endswith((".cu", ".cuh"))})

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
                if (self.root / path).exists():
                    fresh.append(path)
        return found

    def stamp(self, name: str) -> str:
        """Another one where anything that the kernel is made of has changed."""
        return digest(b"\0".join((self.root / part).read_bytes() for part in self.parts[name]))

    def with_file(self, file: str) -> list[str]:
        return [name for name, parts in self.parts.items() if file in parts]

    def suites(self, names: list[str]) -> list[str]:
        """Those of these kernels' operations: of gemm_1_naive, in gemm_test.c and the like; of an
        operation that has none, all of the folder."""
        return sorted({suite for name in names
                       for suite in _suites(self._own(name) or self._tests(name))})

    def other_suites(self, name: str) -> list[str]:
        """The others of a kernel's folder, which may run it too."""
        return sorted(_suites(self._tests(name)) - set(self.suites([name])))

    def _tests(self, name: str) -> list[pathlib.Path]:
        return list((self.root / self.source[name]).parent.glob("*_test.c"))

    def _own(self, name: str) -> list[pathlib.Path]:
        operation = NUMBER.split(name)[0]
        return [path for path in self._tests(name) if path.name.startswith(f"{operation}_")]


def _suites(paths: list[pathlib.Path]) -> set[str]:
    return {suite for path in paths for suite in SUITE.findall(path.read_text(encoding="utf-8"))}
