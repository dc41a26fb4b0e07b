#!/usr/bin/env python3
"""What each operator of ci/mutate --kernels makes of a line of CUDA C."""

import pathlib
import sys
import unittest

from mutation import cuda_operators, kernel_parts

ROOT = pathlib.Path(__file__).resolve().parents[2]


def edits(text: str, operator: str) -> list[str]:
    """What an operator makes of a kernel with this body."""
    source = f"__global__ void k(int *a, int b) {{\n{text}\n}}\n"
    return [mutant.after for mutant in cuda_operators.mutants("k.cu", source)
            if mutant.operator == operator]


class TheOperators(unittest.TestCase):
    def test_indices_become_others(self) -> None:
        self.assertEqual(edits("b = threadIdx.x;", "gpu_index_replacement"), ["b = blockIdx.x;"])
        self.assertEqual(edits("b = blockIdx.y * blockDim.y;", "gpu_index_replacement"),
                         ["b = threadIdx.y * blockDim.y;", "b = blockIdx.y * gridDim.y;"])
        self.assertEqual(edits("b = gridDim.z;", "gpu_index_increment"), ["b = (gridDim.z + 1);"])
        self.assertEqual(edits("b = threadIdx.x;", "gpu_index_decrement"),
                         ["b = (threadIdx.x - 1);"])
        for text in ("b = x.threadIdx;", "// threadIdx.x\nb = 1;", 'f("blockIdx.x");'):
            self.assertEqual(edits(text, "gpu_index_increment"), [], text)

    def test_threads_no_longer_wait(self) -> None:
        self.assertEqual(edits("__syncthreads();", "sync_removal"), [";"])
        self.assertEqual(edits("if (b) __syncwarp(b);", "sync_removal"), ["if (b) ;"])
        self.assertEqual(edits("b = __syncthreads_or(b);", "sync_removal"), [])

    def test_memory_is_no_longer_shared(self) -> None:
        self.assertEqual(edits("__shared__ float t[32];", "share_removal"), ["float t[32];"])
        self.assertEqual(edits("extern __shared__ float t[];", "share_removal"), [])

    def test_atomic_operations_come_apart(self) -> None:
        self.assertEqual(
            edits("atomicAdd(a + f(1, 2), b);", "atom_removal"),
            ["[&] { volatile auto *at = a + f(1, 2); auto old = *at; *at = old + (b); "
             "return old; }();"])
        self.assertEqual(
            edits("b = atomicCAS(a, 0, b);", "atom_removal"),
            ["b = [&] { volatile auto *at = a; auto old = *at; *at = old == (0) ? (b) : old; "
             "return old; }();"])
        self.assertEqual(edits("atomicAdd(a);", "atom_removal"), [])

    def test_an_edit_is_applied_where_it_stands(self) -> None:
        text = "__global__ void k(int *a) {\n    a[0] = threadIdx.x;\n    __syncthreads();\n}\n"
        made = {mutant.operator: mutant
                for mutant in cuda_operators.mutants("k.cu", text)}
        mutant = made["sync_removal"]
        self.assertEqual((mutant.line, mutant.apply(text)),
                         (3, text.replace("__syncthreads();", ";")))


class TheKernels(unittest.TestCase):
    def test_a_header_is_in_all_kernels_that_include_it(self) -> None:
        found = kernel_parts.Kernels(ROOT)
        self.assertIn("softmax_1_naive", found.with_file("kernels/row/row.cuh"))
        self.assertEqual(found.with_file("kernels/softmax/softmax_1_naive.cu"),
                         ["softmax_1_naive"])
        self.assertIn("kernels/row/row.cuh", found.files)
        self.assertIn("softmax", found.suites(["softmax_1_naive"]))
        self.assertNotIn("softmax", found.suites(["gemm_1_naive"]))
        self.assertIn("gather_columns", found.other_suites("collective_3_columns"))
        self.assertNotIn("collective", found.other_suites("collective_3_columns"))

    def test_the_sources_have_something_to_change(self) -> None:
        found = kernel_parts.Kernels(ROOT)
        operators = {mutant.operator for file in found.files
                     for mutant in cuda_operators.mutants(
                         file, (ROOT / file).read_text(encoding="utf-8"))}
        self.assertLessEqual({"gpu_index_replacement", "gpu_index_increment",
                              "gpu_index_decrement", "sync_removal", "share_removal"}, operators)


if __name__ == "__main__":
    sys.exit(unittest.main())
