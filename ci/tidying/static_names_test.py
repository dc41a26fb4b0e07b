#!/usr/bin/env python3
"""What tidying/static_names.py must find, and what it must leave alone."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tidying import static_names

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


if __name__ == "__main__":
    sys.exit(unittest.main())
