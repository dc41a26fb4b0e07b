"""Tests of driver_names.py: python3 ci/tidying/driver_names_test.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import driver_names

HEADER = """
#define cuMemAlloc cuMemAlloc_v2
    #define cuMemcpy __CUDA_API_PTDS(cuMemcpy)
CUresult CUDAAPI cuInit(unsigned int Flags);
CUresult CUDAAPI cuGetProcAddress_v2_ptsz(int);
"""


class Names(unittest.TestCase):
    def run_program(self, *words: str) -> "subprocess.CompletedProcess[str]":
        program = str(pathlib.Path(driver_names.__file__))
        return subprocess.run([sys.executable, program, *words], capture_output=True, text=True,
                              check=False)

    def test_declarations_renames_and_variants_are_names(self) -> None:
        self.assertEqual(driver_names.declared(HEADER),
                         {"cuMemAlloc_v2", "cuMemcpy", "cuMemcpy_ptds", "cuInit"})

    def test_both_lists_are_read(self) -> None:
        names = driver_names.exported()
        for name in ("cuInit", "cuMemcpy_ptds", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                     "cuArrayCreate_v2", "cuMemcpyAtoH_v2_ptds", "cuLaunchGrid"):
            self.assertIn(name, names)
        self.assertGreater(len(names), 600)

    def test_a_name_that_is_not_exported_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "cuda.h")
            all_names = "".join(f"CUresult CUDAAPI {name}(void);\n"
                                for name in driver_names.exported())
            path.write_text(all_names)
            self.assertEqual(self.run_program(str(path)).returncode, 0)
            path.write_text(all_names + "CUresult CUDAAPI cuDreamOfSheep(void);\n")
            done = self.run_program(str(path))
            self.assertEqual(done.returncode, 1)
            self.assertIn("cuDreamOfSheep is in cuda.h", done.stdout)
            path.write_text("no header")
            self.assertEqual(self.run_program(str(path)).returncode, 2)
            done = self.run_program(folder + "/none.h")
            self.assertEqual(done.returncode, 2)
            self.assertIn("none.h", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-q"])
