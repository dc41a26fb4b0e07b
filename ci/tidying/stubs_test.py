#!/usr/bin/env python3
"""What ci/tidying/stubs.py must find, and what it must let be."""

import sys
import unittest

import stubs

STUBS = {
    "unused": "int unused(int a) {\n    (void)a;\n    return 0;\n}\n",
    "silent": "static void silent(const char *text, unsigned n) {\n}\n",
    "later": "tol_status later(struct tol_pool *pool,\n                 size_t bytes) {\n"
             "    (void)pool; /* not used yet */\n    (void)bytes;\n    return TOL_OK;\n}\n",
    "cuNothing": "EXPORT(cuNothing, (CUdevice * device)) {\n    (void)device;\n"
                 "    return CUDA_ERROR_NOT_SUPPORTED;\n}\n",
}
SOUND = ("int one(void) {\n    return 1;\n}\n",
         "int same(int a) {\n    return a;\n}\n",
         "void set(int *a) {\n    *a = 0;\n}\n",
         "int ask(int a) {\n    (void)a;\n    return other();\n}\n",
         "EXPORT(cuCtxGetDevice, (CUdevice * device)) {\n    return get(device, NULL);\n}\n")


class Stubs(unittest.TestCase):
    def test_a_function_that_ignores_all_it_is_given_is_one(self) -> None:
        for name, text in STUBS.items():
            self.assertEqual([found for _, found in stubs.in_c("\n" + text)], [name])
        self.assertEqual(stubs.in_c("int a;\n\n" + STUBS["unused"]), [(3, "unused")])

    def test_a_function_that_does_something_is_none(self) -> None:
        for text in SOUND:
            self.assertEqual(stubs.in_c(text), [], text)

    def test_python_that_is_put_off_is_one(self) -> None:
        for body in ("pass", "...", "raise NotImplementedError", '"""Later."""'):
            self.assertEqual(stubs.in_python(f"def later(a):\n    {body}\n"), [(1, "later")])
        self.assertEqual(stubs.in_python("def one():\n    return 1\n"), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
