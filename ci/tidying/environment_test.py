#!/usr/bin/env python3
"""What ci/tidying/environment.py must find, and what it must let be."""

import sys
import unittest

import environment

PAGE = ("| variable | meaning |\n|---|---|\n| `TOLLENS_SEED` | a number |\n"
        "| `HOME`, `PATH` | `x` |\n")
SOUND = {"a.c": 'getenv("TOLLENS_SEED"); puts("TOLLENS_SEED is bad"); puts("TOLLENS_SOFT_");',
         "b.py": 'os.environ.get("HOME")\nos.environ["PATH"]', "c.md": "$TOLLENS_OTHER"}


class Environment(unittest.TestCase):
    def test_a_page_that_lists_all_is_sound(self) -> None:
        self.assertEqual(list(environment.check(SOUND, PAGE)), [])

    def test_each_way_to_name_one_is_found_with_its_line(self) -> None:
        for path, text in (("d.c", '\nread_number("TOLLENS_NEW", 1)'), ("d.c", '\ngetenv("NEW")'),
                           ("d.h", '\nput("TOLLENS_NEW=%s")'), ("d.py", '\nNAME = "TOLLENS_NEW"'),
                           ("d.py", '\nos.environ.get("NEW", "")'), ("d.py", "\nos.environ['NEW']"),
                           ("ci/d", '#!/bin/sh\necho "${TOLLENS_NEW:-1}"')):
            found = list(environment.check({**SOUND, path: text}, PAGE))
            self.assertEqual(len(found), 1, text)
            self.assertRegex(found[0], rf"^{path}:2: .* does not list .* (TOLLENS_)?NEW$")

    def test_a_row_that_nothing_uses_or_that_is_there_twice_is_found(self) -> None:
        found = list(environment.check(SOUND, PAGE + "| `TOLLENS_GONE` | a number |\n"))
        self.assertEqual(found, [f"{environment.PAGE}: no file uses the environment variable "
                                 "TOLLENS_GONE"])
        found = list(environment.check(SOUND, PAGE + "| `HOME` | a folder |\n"))
        self.assertEqual(found, [f"{environment.PAGE}: HOME is listed twice"])


if __name__ == "__main__":
    sys.exit(unittest.main())
