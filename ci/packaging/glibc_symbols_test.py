"""What a glibc lacks, found without running it: of this machine's, and of one that is made to lack
some."""

import contextlib
import io
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import glibc_symbols  # noqa: E402
from contents import output  # noqa: E402

PROGRAM = r"""
#include <math.h>
#include <stdio.h>
extern int beside(void) __attribute__((weak));
int main(int n, char **v) {
    return puts("x") + (sin(n) > 0) + (beside ? beside() : v == NULL);
}
"""
# Names of functions, whose types nobody asks for.
EMPTY = "void __libc_start_main(void) {}\nvoid __cxa_finalize(void) {}\nvoid puts(void) {}\n"


@unittest.skipUnless(platform.machine() == "x86_64", "other processors' glibc began later")
class GlibcSymbols(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.ours, self.theirs = pathlib.Path(made.name) / "ours", pathlib.Path(made.name) / "glibc"
        self.ours.mkdir()
        self.theirs.mkdir()
        self.compile(PROGRAM, self.ours / "program", "-O0", "-fno-builtin", "-lm")

    def compile(self, source: str, path: pathlib.Path, *flags: str) -> None:
        subprocess.run(["gcc", "-w", "-x", "c", "-o", str(path), "-", *flags], check=True,
                       input=source, text=True)

    def library(self, name: str, source: str, version: str) -> None:
        script = self.theirs / "script"
        script.write_text(f"{version} {{ global: *; }};\n")
        self.compile(source, self.theirs / name, "-shared", "-fPIC", "-fno-builtin", "-nostdlib",
                     f"-Wl,-soname,{name},--version-script={script}")

    def compare(self) -> tuple[int, str]:
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["", str(self.ours), str(self.theirs)]), \
                contextlib.redirect_stdout(said):
            code = glibc_symbols.main()
        return code, said.getvalue()

    def test_this_machines_glibc_has_all(self) -> None:
        for name in ("libc.so.6", "libm.so.6", "libmvec.so.1"):
            path = pathlib.Path(output("gcc", f"-print-file-name={name}").strip())
            if path.is_file():
                shutil.copy(path, self.theirs / name)
        loader = output("gcc", "-print-file-name=ld-linux-x86-64.so.2").strip()
        shutil.copy(loader, self.theirs / glibc_symbols.LOADER)
        code, said = self.compare()
        self.assertEqual(code, 0, said)
        self.assertIn("summary: 1 of 1 files find all", said)
        asked = int(said.split("ask for ")[1].split()[0])
        self.assertGreaterEqual(asked, 3)

    def test_what_another_lacks_is_named(self) -> None:
        self.library("libc.so.6", EMPTY, "GLIBC_2.2.5")
        self.library("libm.so.6", "void cos(void) {}", "GLIBC_2.2.5")
        code, said = self.compare()
        self.assertEqual(code, 1)
        self.assertIn("program lacks ", said)
        self.assertIn("sin@GLIBC_2.2.5", said)
        self.assertNotIn("puts@", said)
        self.assertNotIn("beside", said)  # it can do without
        self.assertIn("summary: 0 of 1 files", said)

    def test_a_version_and_a_library_that_are_not_there_are_named(self) -> None:
        self.library("libc.so.6", EMPTY, "GLIBC_2.1")
        code, said = self.compare()
        self.assertEqual(code, 1)
        for lack in ("libm.so.6", "GLIBC_2.2.5 of libc.so.6", "puts@GLIBC_2.2.5"):
            self.assertIn(lack, said)

    def test_without_a_glibc_nothing_is_said_of_one(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(self.compare()[0], 2)


if __name__ == "__main__":
    unittest.main()
