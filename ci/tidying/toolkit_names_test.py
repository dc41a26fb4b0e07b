#!/usr/bin/env python3
"""What ci/tidying/toolkit_names.py reads of lists, headers and libraries, and what it must find."""

import pathlib
import shutil
import sys
import unittest

import toolkit_names
import trial

HEADER = """
#define cuMemAlloc cuMemAlloc_v2
    #define cuMemcpy __CUDA_API_PTDS(cuMemcpy)
CUresult CUDAAPI cuInit(unsigned int Flags);
CUresult CUDAAPI cuGetProcAddress_v2_ptsz(int);
"""


class Names(trial.Trial):
    def compare(self, code: int, said: str, path: str | pathlib.Path) -> None:
        self.expect(code, said, sys.executable, toolkit_names.__file__, path)

    def test_declarations_renames_and_variants_are_names(self) -> None:
        self.assertEqual(toolkit_names.declared(HEADER),
                         {"cuMemAlloc_v2", "cuMemcpy", "cuMemcpy_ptds", "cuInit"})

    def test_both_lists_of_the_driver_are_read(self) -> None:
        names = toolkit_names.exported_by_driver()
        self.assertLessEqual({"cuInit", "cuMemcpy_ptds", "cuArrayCreate_v2", "cuLaunchGrid",
                              "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                              "cuMemcpyAtoH_v2_ptds"}, names)
        self.assertGreater(len(names), 600)

    def test_both_editions_of_the_runtime_are_told_apart(self) -> None:
        old, new = map(toolkit_names.exported_by_runtime, (12, 13))
        self.assertLessEqual({"cudaMalloc", "cudaMemcpyAsync_ptsz", "cudaMemcpy_ptds",
                              "cudaGetLastError", "__cudaRegisterFatBinary", "cudaChooseDevice",
                              "__cudaLaunchKernel_ptsz", "cudaGLGetDevices",
                              "cudaCreateChannelDesc"}, old & new)
        self.assertLessEqual({"cudaThreadExit", "cudaMemAdvise_v2", "cudaGetDeviceProperties_v2"},
                             old - new)
        self.assertIn("cudaLogsCurrent", new - old)

    def test_a_name_of_the_driver_that_is_missing_is_found(self) -> None:
        text = "".join(f"CUresult CUDAAPI {name}(void);\n"
                       for name in toolkit_names.exported_by_driver())
        self.compare(0, ", 0 missing", self.write("cuda.h", text))
        self.compare(1, "cuDreamOfSheep is in cuda.h", self.write(
            "cuda.h", text + "CUresult CUDAAPI cuDreamOfSheep(void);\n"))

    @unittest.skipUnless(shutil.which("cc") and shutil.which("nm"), "needs cc and nm")
    def test_a_name_of_the_runtime_that_is_missing_is_found(self) -> None:
        self.write("a.c", "void cudaMalloc(void) {}\nvoid cudaDreamOfSheep(void) {}\n")
        self.write("a.map", "libcudart.so.13 { global: cuda*; };\n")
        self.expect(0, "", "cc", "-shared", "-fPIC", "a.c", "-o", "libcudart.so",
                    "-Wl,--version-script=a.map")
        library = self.folder / "libcudart.so"
        self.compare(1, "cudaDreamOfSheep is in libcudart.so", library)
        self.compare(1, "2 names of libcudart.so, 1 missing", library)

    @unittest.skipUnless((toolkit_names.BUILD / "libcublas.so.13").exists(), "needs our cuBLAS")
    def test_a_name_of_cublas_that_is_missing_is_found(self) -> None:
        (self.folder / "include").mkdir()
        (self.folder / "lib").mkdir()
        self.write("include/cublas_v2.h", "cublasSgemm_v2 cublasDreamOfSheep")
        self.write("a.c", "".join(f"void {name}(void) {{}}\n" for name in (
            "cublasSgemm_v2", "cublasDreamOfSheep", "cublasInternal")))
        self.expect(0, "", "cc", "-shared", "-fPIC", "a.c", "-o", "lib/libcublas.so",
                    "-Wl,--default-symver,-soname,libcublas.so.13")
        self.compare(1, "2 names of libcublas.so, 1 missing", self.folder / "lib/libcublas.so")

    def test_what_cannot_be_read_is_an_error(self) -> None:
        self.compare(2, "so it is not cuda.h", self.write("other.h", "no header"))
        self.compare(2, "it is not a libcudart.so", str(shutil.which("sh")))
        for name in ("none.h", "libcudart.so"):
            self.compare(2, name, f"/none/{name}")


if __name__ == "__main__":
    sys.exit(unittest.main())
