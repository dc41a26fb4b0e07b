#!/usr/bin/env python3
"""What ci/tidying/raw_calls.py must find, and what it must let be."""

import sys
import unittest

import floors
import raw_calls

RAW = ("    cu->cuMemFree_v2(address);", "    table.cuLaunchKernel(kernel);",
       "    TOL_CU(cu, cuCtxSynchronize, (), \"waiting\");", "    hold(attack->raw);",
       "    cu = tol_driver_functions(driver);", "    cuMemAlloc_v2(&address, 4);",
       "    CUresult (*free)(CUdeviceptr) = cu->cuMemFree_v2;")
SOUND = ("    /* cu->cuMemFree_v2(address) */", "    // cuInit(0)", "    puts(\"cuInit(0)\");",
         "    CUresult result = CUDA_SUCCESS;", "    tol_buffer_destroy(buffer);",
         "    cut(cuter.current);")
# A file for each entry, so that none is unneeded.
WHOLE = {f"{entry}some.c" if entry.endswith("/") else entry: RAW[0] for entry in raw_calls.ALLOWED}


class RawCalls(unittest.TestCase):
    def test_a_raw_call_is_found_with_its_line(self) -> None:
        for text in RAW:
            self.assertEqual([line for line, _ in raw_calls.in_c(f"/*\n */\n{text}\n")], [3], text)

    def test_other_text_is_not(self) -> None:
        for text in SOUND:
            self.assertEqual(raw_calls.in_c(text), [], text)

    def test_each_place_is_allowed_or_not(self) -> None:
        self.assertEqual(list(raw_calls.check(WHOLE)), [])
        self.assertEqual(list(raw_calls.check({**WHOLE, "runtime/soft/api/api_device.c": RAW[0],
                                               "runtime/include/tollens/driver.def": RAW[0]})), [])
        for path in ("kernels/gemm/gemm.c", "runtime/examples/example.c", "hypotheses/h05/h05_x.c",
                     "hypotheses/harness/judge/gate.c", "runtime/include/tollens/pool.h",
                     "kernels/gemm/gemm_test.c", "hypotheses/h04_launches_cost_little.c.c"):
            found = list(raw_calls.check({**WHOLE, path: "\n" + RAW[0]}))
            self.assertEqual(len(found), 1, path)
            self.assertTrue(found[0].startswith(f"{path}:2: ->cuMemFree_v2 "), found[0])

    def test_an_entry_that_nothing_needs_is_found(self) -> None:
        for path in WHOLE:
            found = list(raw_calls.check({**WHOLE, path: SOUND[0]}))
            self.assertEqual(len(found), 1, path)
            self.assertIn("calls no function", found[0])

    def test_this_tree_is_as_the_table_says(self) -> None:
        self.assertEqual(list(raw_calls.check(floors.read_tree())), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
