"""Packages for another processor: the compiler's options, how their programs run, and the messages
if something is missing."""

import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

import cross
import older_glibc
import target
from contents import ROOT, glibc_needed, needed_libraries, stripped
import trial

COMPILER = "aarch64-linux-gnu-gcc"
# Starts itself again, like a test program that starts its workers.
PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
    if (count == 1) return execl("/proc/self/exe", words[0], "2", (char *)NULL), 3;
    printf("%g %s\n", sqrt(count * 2.0), __VERSION__[0] != 0 && sizeof(long) == 8 ? "aarch64" : "");
}
"""


def why_not() -> str:
    """What is missing for programs of aarch64; empty: nothing."""
    lacking = cross.missing("aarch64")
    if lacking:
        return f"not installed: {' '.join(lacking)}"
    done = subprocess.run([COMPILER, "-E", "-x", "c", "-"], input="#include <stdio.h>\n", text=True,
                          capture_output=True, check=False)
    return "" if done.returncode == 0 else "not installed: libc6-dev-arm64-cross"


class Refusals(trial.Trial):
    def test_a_processor_that_is_not_known_and_what_is_missing_are_told(self) -> None:
        with self.assertRaisesRegex(cross.Unmade, "there is no --arch z80: aarch64"):
            cross.make("z80")
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            with self.assertRaisesRegex(cross.Unmade, "please install: gcc-aarch64-linux-gnu "
                                                      "mmdebstrap qemu-user-static patchelf"):
                cross.make("aarch64")
        self.expect(2, "package: there is no --arch z80: aarch64\n", sys.executable,
                    ROOT / "ci/packaging/wheel.py", "--arch", "z80")


@unittest.skipIf(why_not(), why_not())
class Aarch64(trial.Trial):
    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path("/usr/aarch64-linux-gnu")
        config = self.write("config.ninja", f"cc = {COMPILER}\n"
                            f"runner = {cross.qemu_of('aarch64')} -L {self.root}\n")
        patch = mock.patch.object(target, "CONFIG", config)
        patch.start()
        self.addCleanup(patch.stop)
        for function in (target.setting, target.triple):
            function.cache_clear()
            self.addCleanup(function.cache_clear)
        self.write("program.c", PROGRAM)
        self.program = self.folder / "program"
        self.expect(0, "", COMPILER, "-g", "-o", "program", "program.c", "-lm")

    def test_the_build_is_known_to_be_for_another_processor(self) -> None:
        self.assertEqual(target.machine(), "aarch64")
        self.assertEqual(target.tool("strip"), "aarch64-linux-gnu-strip")
        self.assertEqual(needed_libraries(self.program), [])
        self.assertGreater(glibc_needed(self.program), older_glibc.NEWEST)
        stripped(self.program, self.folder / "copy")
        self.assertLess((self.folder / "copy").stat().st_size, self.program.stat().st_size)

    def test_its_programs_run_and_start_others(self) -> None:
        said = cross.run("aarch64", self.root, [str(self.program)])
        self.assertEqual(said, "2 aarch64\n")
        with self.assertRaisesRegex(cross.Unmade, "false failed"):
            cross.run("aarch64", self.root, ["false"])
        self.assertFalse(pathlib.Path("/proc/sys/fs/binfmt_misc/other").exists())

    def test_they_run_with_an_older_glibc(self) -> None:
        self.expect(0, "", COMPILER, "-o", "program", "program.c", "-lm", "-Wl,-rpath,$ORIGIN/lib")
        older_glibc.make_shim(self.folder / "lib")
        older_glibc.make_older(self.program)
        self.assertLessEqual(glibc_needed(self.program), older_glibc.NEWEST)
        self.assertEqual(cross.run("aarch64", self.root, [str(self.program)]), "2 aarch64\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
