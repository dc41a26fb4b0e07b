#!/usr/bin/env python3
"""In the coverage build what runs before _exit counts, in a program and in a library that it
opens."""

import pathlib
import re
import subprocess
import sys
import unittest

import trial

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


class Counts(trial.Trial):
    def executed(self, *more: str) -> list[str]:
        """Of a build with these flags: how often the line before _exit ran, and the library's."""
        self.write("library.c", LIBRARY)
        self.write("program.c", PROGRAM)
        gcc = ["gcc", "-O0", "-g", "--coverage", "-fPIC", "-fvisibility=default"]
        self.expect(0, "", *gcc, *more, "-c", "library.c", "program.c")
        self.expect(0, "", *gcc, "-shared", "library.o", "-o", "libcounted.so")
        self.expect(0, "", *gcc, "-Wl,--export-dynamic-symbol=tol_counts_all", "program.o", "-o",
                    "program", "-ldl")
        self.expect(3, "", "./program")
        return [self.count(source, line) for source, line in (("program.c", 9), ("library.c", 2))]

    def count(self, source: str, line: int) -> str:
        said = subprocess.run(["gcov", "--stdout", source], cwd=self.folder, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        found = re.search(rf"^ *(\S+): *{line}:", said, re.MULTILINE)
        return found[1] if found else "none"

    def test_what_runs_before_exit_counts(self) -> None:
        self.assertEqual(self.executed("-include", str(HEADER)), ["1", "1"])

    def test_without_the_header_it_does_not(self) -> None:
        self.assertNotIn("1", self.executed())


if __name__ == "__main__":
    sys.exit(unittest.main())
