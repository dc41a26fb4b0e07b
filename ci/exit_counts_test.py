#!/usr/bin/env python3
"""In the coverage build what runs before _exit counts, in a program and in a library that it
opens."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HEADER = pathlib.Path(__file__).with_name("exit_counts.h")
LIBRARY = """\
int in_library(int n) {
    return n + 1;
}
"""
PROGRAM = """\
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    pid_t child = fork();
    if (child == 0) {
        void *library = dlopen("./libcounted.so", RTLD_NOW | RTLD_LOCAL);
        int (*function)(int) = (int (*)(int))dlsym(library, "in_library");
        _exit(function(2));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
"""


class Counts(unittest.TestCase):
    def executed(self, *more: str) -> tuple[str, str]:
        """Of a build with these flags: how often the line before _exit ran, and the library's."""
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            (at / "library.c").write_text(LIBRARY)
            (at / "program.c").write_text(PROGRAM)
            flags = ["-O0", "-g", "--coverage", "-fPIC", "-fvisibility=default", *more]
            for words in (["gcc", *flags, "-c", "library.c"], ["gcc", *flags, "-c", "program.c"],
                          ["gcc", "--coverage", "-shared", "library.o", "-o", "libcounted.so"],
                          ["gcc", "--coverage", "-Wl,--export-dynamic-symbol=tol_counts_all",
                           "program.o", "-o", "program",
                           "-ldl"]):
                subprocess.run(words, cwd=at, check=True)
            done = subprocess.run(["./program"], cwd=at, check=False)
            self.assertEqual(done.returncode, 3)
            found = []
            for source, line in (("program.c", 9), ("library.c", 2)):
                subprocess.run(["gcov", source], cwd=at, stdout=subprocess.DEVNULL, check=False,
                               stderr=subprocess.DEVNULL)
                text = at / f"{source}.gcov"
                lines = text.read_text().split("\n") if text.exists() else []
                counts = [each.split(":")[0].strip() for each in lines
                          if f"{line:5}:" in each[9:16]]
                found.append(counts[0] if counts else "none")
            return found[0], found[1]

    def test_what_runs_before_exit_counts(self) -> None:
        self.assertEqual(self.executed("-include", str(HEADER)), ("1", "1"))

    def test_without_the_header_it_does_not(self) -> None:
        self.assertNotIn("1", self.executed())


if __name__ == "__main__":
    sys.exit(unittest.main())
