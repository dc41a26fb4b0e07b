#!/usr/bin/env python3
"""What stubs.py, raw_calls.py, static_names.py, environment.py and budgets.py of ci/tidying must
find, and what they must let be."""

import sys
import unittest

import floors
import trial
from tidying import budgets, environment, raw_calls, static_names, stubs

STUBS = {
    "unused": "int unused(int a) {\n    (void)a;\n    return 0;\n}\n",
    "silent": "static void silent(const char *text, unsigned n) {\n}\n",
    "later": "tol_status later(struct tol_pool *pool,\n                 size_t bytes) {\n"
             "    (void)pool; /* not used yet */\n    (void)bytes;\n    return TOL_OK;\n}\n",
    "cuNothing": "EXPORT(cuNothing, (CUdevice * device)) {\n    (void)device;\n"
                 "    return CUDA_ERROR_NOT_SUPPORTED;\n}\n",
}
NO_STUBS = ("int one(void) {\n    return 1;\n}\n",
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
        for text in NO_STUBS:
            self.assertEqual(stubs.in_c(text), [], text)

    def test_python_that_is_put_off_is_one(self) -> None:
        for body in ("pass", "...", "raise NotImplementedError", '"""Later."""'):
            self.assertEqual(stubs.in_python(f"def later(a):\n    {body}\n"), [(1, "later")])
        self.assertEqual(stubs.in_python("def one():\n    return 1\n"), [])


RAW = ("    cu->cuMemFree_v2(address);", "    table.cuLaunchKernel(kernel);",
       "    TOL_CU(cu, cuCtxSynchronize, (), \"waiting\");", "    hold(attack->raw);",
       "    cu = tol_driver_functions(driver);", "    cuMemAlloc_v2(&address, 4);",
       "    CUresult (*free)(CUdeviceptr) = cu->cuMemFree_v2;")
NOT_RAW = ("    /* cu->cuMemFree_v2(address) */", "    // cuInit(0)", "    puts(\"cuInit(0)\");",
           "    CUresult result = CUDA_SUCCESS;", "    tol_buffer_destroy(buffer);",
           "    cut(cuter.current);")
# A file for each entry, so that none is unneeded.
WHOLE = {f"{entry}some.c" if entry.endswith("/") else entry: RAW[0] for entry in raw_calls.ALLOWED}


class RawCalls(unittest.TestCase):
    def test_a_raw_call_is_found_with_its_line(self) -> None:
        for text in RAW:
            self.assertEqual([line for line, _ in raw_calls.in_c(f"/*\n */\n{text}\n")], [3], text)

    def test_other_text_is_not(self) -> None:
        for text in NOT_RAW:
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
            found = list(raw_calls.check({**WHOLE, path: NOT_RAW[0]}))
            self.assertEqual(len(found), 1, path)
            self.assertIn("calls no function", found[0])

    def test_a_number_of_the_programs_locale_is_found_in_libraries(self) -> None:
        reads, writes = "x = strtod(text, &end);", 'printf("{\\"at\\":%.3f}", at);'
        for path in ("runtime/driver/pool/a.c", "runtime/soft/ptx/a.c", "kernels/choose/a.c"):
            for text in (reads, writes):
                found = list(raw_calls.check({**WHOLE, path: f"/* strtod( */\n{text}\n"}))
                self.assertEqual([one.startswith(f"{path}:2: ") for one in found], [True], text)
            self.assertEqual(list(raw_calls.check({**WHOLE, path: '"c_locale.h"\n' + writes})), [])
        for path in ("hypotheses/a.c", "kernels/bench/a.c", "runtime/driver/pool/a_test.c"):
            self.assertEqual(list(raw_calls.check({**WHOLE, path: reads + writes})), [], path)
        self.assertEqual(list(raw_calls.check({**WHOLE, "runtime/soft/ptx/a.c":
                                               'fail("a scale of %g", x);'})), [])

    def test_this_tree_is_as_the_table_says(self) -> None:
        self.assertEqual(list(raw_calls.check(floors.read_tree())), [])


FIND = "static struct tol_span *find(struct tol_spans *spans,\n                  int at) {\n}\n"


class StaticNames(unittest.TestCase):
    def test_a_name_of_two_files_is_found_once(self) -> None:
        for text in (FIND, "TOL_COLD static bool find(void) {\n",
                     "static inline int find(int a) {\n"):
            found = list(static_names.check({"a/one.c": FIND, "a/two.c": text}))
            self.assertEqual(found, ["a/two.c: a/one.c has a static function find too: add the "
                                     "file's noun"])

    def test_declarations_headers_tests_and_nouns_are_left_alone(self) -> None:
        for path, text in (("a/two.c", "static bool find(void);\n"), ("a/two.h", FIND),
                           ("a/two_test.c", FIND), ("a/test/two.c", FIND),
                           ("a/two.c", FIND.replace("find", "two_find")),
                           ("a/two.c", "/* static */ bool x = find(1);\n")):
            self.assertEqual(list(static_names.check({"a/one.c": FIND, path: text})), [])


PAGE = ("| variable | meaning |\n|---|---|\n| `TOLLENS_SEED` | a number |\n"
        "| `HOME`, `PATH` | `x` |\n")
LISTED = {"a.c": 'getenv("TOLLENS_SEED"); puts("TOLLENS_SEED is bad"); puts("TOLLENS_SOFT_");',
          "b.py": 'os.environ.get("HOME")\nos.environ["PATH"]', "c.md": "$TOLLENS_OTHER"}


class Environment(unittest.TestCase):
    def test_a_page_that_lists_all_is_sound(self) -> None:
        self.assertEqual(list(environment.check(LISTED, PAGE)), [])

    def test_each_way_to_name_one_is_found_with_its_line(self) -> None:
        for path, text in (("d.c", '\nread_number("TOLLENS_NEW", 1)'), ("d.c", '\ngetenv("NEW")'),
                           ("d.h", '\nput("TOLLENS_NEW=%s")'), ("d.py", '\nNAME = "TOLLENS_NEW"'),
                           ("d.py", '\nos.environ.get("NEW", "")'), ("d.py", "\nos.environ['NEW']"),
                           ("ci/d", '#!/bin/sh\necho "${TOLLENS_NEW:-1}"')):
            found = list(environment.check({**LISTED, path: text}, PAGE))
            self.assertEqual(len(found), 1, text)
            self.assertRegex(found[0], rf"^{path}:2: .* does not list .* (TOLLENS_)?NEW$")

    def test_a_row_that_nothing_uses_or_that_is_there_twice_is_found(self) -> None:
        found = list(environment.check(LISTED, PAGE + "| `TOLLENS_GONE` | a number |\n"))
        self.assertEqual(found, [f"{environment.PAGE}: no file uses the environment variable "
                                 "TOLLENS_GONE"])
        found = list(environment.check(LISTED, PAGE + "| `HOME` | a folder |\n"))
        self.assertEqual(found, [f"{environment.PAGE}: HOME is listed twice"])


class Budgets(trial.Trial):
    """Each is exceeded by one too many, and not before."""

    def setUp(self) -> None:
        super().setUp()
        for name in ("README.md", "ci/CHANGELOG.md"):
            self.write(name, "a\n")

    def found(self) -> list[str]:
        return budgets.findings(budgets.tree(self.folder))

    def test_each_is_met_to_the_last_and_exceeded_by_one_more(self) -> None:
        for name, text, more in (
                ("README.md", "a\n" * 120, "a\n"), ("ci/CHANGELOG.md", "a " * 1500, "a"),
                ("ci/x.py", "a\n" * 13_000, "a\n"), ("ci/y", "#!/bin/sh\n" * 13_000, "a\n"),
                ("docs/z.md", "a " * 44_998, "a"), ("big.bin", "a" * 39_999_990, "a" * 20),
                ("kernels/README.md", "a\n" * 150, "a\n")):
            with self.subTest(name=name):
                self.write(name, text)
                self.assertEqual(self.found(), [])
                self.write(name, text + more)
                self.assertEqual(len(self.found()), 1, self.found())
                self.write(name, "a")

    def test_files_are_counted_and_published_ones_are_not(self) -> None:
        for number in range(2898):
            self.write(f"many/{number}.c", "")
        self.write("reports/published/run/results.json", "")
        self.assertEqual(self.found(), [])
        self.write("many/more.c", "")
        self.assertEqual(self.found(), ["2901 files outside published evidence; at most 2900"])


if __name__ == "__main__":
    sys.exit(unittest.main())
