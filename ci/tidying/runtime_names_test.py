"""Tests of runtime_names.py: python3 ci/tidying/runtime_names_test.py."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import runtime_names


class Names(unittest.TestCase):
    def run_program(self, *words: str) -> "subprocess.CompletedProcess[str]":
        program = str(pathlib.Path(runtime_names.__file__))
        return subprocess.run([sys.executable, program, *words], capture_output=True, text=True,
                              check=False)

    def test_both_editions_are_told_apart(self) -> None:
        old, new = runtime_names.exported(12), runtime_names.exported(13)
        both = old & new
        for name in ("cudaMalloc", "cudaMemcpyAsync_ptsz", "cudaMemcpy_ptds", "cudaGetLastError",
                     "__cudaRegisterFatBinary", "__cudaLaunchKernel_ptsz", "cudaGLGetDevices",
                     "cudaCreateChannelDesc", "cudaChooseDevice"):
            self.assertIn(name, both)
        for name in ("cudaThreadExit", "cudaMemAdvise_v2", "cudaGetDeviceProperties_v2"):
            self.assertIn(name, old - new)
        self.assertIn("cudaLogsCurrent", new - old)

    def test_what_cannot_be_read_is_an_error(self) -> None:
        self.assertEqual(self.run_program("/none/libcudart.so").returncode, 2)
        done = self.run_program(str(shutil.which("sh")))
        self.assertEqual(done.returncode, 2)
        self.assertIn("it is not a libcudart.so", done.stderr)

    @unittest.skipUnless(shutil.which("cc") and shutil.which("nm"), "needs cc and nm")
    def test_a_name_that_is_missing_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, names = pathlib.Path(folder, "a.c"), pathlib.Path(folder, "a.map")
            library = str(pathlib.Path(folder, "libcudart.so"))
            source.write_text("void cudaMalloc(void) {}\nvoid cudaDreamOfSheep(void) {}\n")
            names.write_text("libcudart.so.13 { global: cuda*; };\n")
            subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", library,
                            f"-Wl,--version-script={names}"], check=True)
            done = self.run_program(library)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cudaDreamOfSheep is in libcudart.so", done.stdout)
            self.assertIn("2 names of CUDA 13's runtime, 1 missing", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-q"])
