#!/usr/bin/env python3
"""What tidying/prose.py must find, and what it must leave alone."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tidying import prose

PAGE, SOURCE = pathlib.PurePosixPath("runtime/README.md"), pathlib.PurePosixPath("runtime/a.c")
KNOWN = ["runtime/driver/pool/pool.c", "runtime/include/tollens/pool.h", "ci/tidy.py"]


class Idioms(unittest.TestCase):
    def found(self, path: pathlib.PurePosixPath, text: str) -> list[str]:
        return list(prose.idioms(path, text))

    def test_each_is_found_on_a_page_and_in_a_comment(self) -> None:
        for text in ("the kernel behind it", "a row a block", "one a multiprocessor",
                     "blocks that stay", "shares of steps", "25 seconds of processors",
                     "as many as there are warps", "a thread goes round", "it is told which"):
            for path, whole in ((PAGE, text), (SOURCE, f"int a; /* {text} */\n"),
                                (SOURCE, f"int a; // {text}\n")):
                self.assertEqual(len(self.found(path, whole)), 1, whole)

    def test_a_comment_of_several_lines_is_read_as_one_text(self) -> None:
        self.assertEqual(len(self.found(SOURCE, "/* one a\n * warp */\n")), 1)

    def test_code_and_names_are_left_alone(self) -> None:
        for text in ("int behind = 1;", "rows_behind_2();", "/* behind_2 is a kernel */",
                     "/* after a block, a warp-specialised kernel */", "/* of a device's */"):
            self.assertEqual(self.found(SOURCE, text), [], text)


class Figures(unittest.TestCase):
    def found(self, text: str) -> list[str]:
        return list(prose.figures(PAGE, text))

    def test_measured_figures_are_found(self) -> None:
        for text in ("It takes 17.7 us on an H200.", "reaches 790 TFLOP/s", "1.03 of cuBLAS",
                     "25,440 tokens/s", "copies at 3.9 GB/s"):
            self.assertEqual(len(self.found(text)), 1, text)

    def test_limits_code_and_generated_pages_are_left_alone(self) -> None:
        for text in ("adds at most 2 us to a launch", "kernels of 1 ms", "    takes 17 us",
                     "```text\n17 us\n```", "`0.3 us`", "of 4096 bytes"):
            self.assertEqual(self.found(text), [], text)
        page = pathlib.PurePosixPath("kernels/PERFORMANCE.md")
        self.assertEqual(list(prose.figures(page, "It takes 17.7 us.")), [])


class Paths(unittest.TestCase):
    def found(self, text: str) -> list[str]:
        return list(prose.dead_paths(PAGE, text, KNOWN))

    def test_dead_paths_are_found(self) -> None:
        for text in ("`../pool.h`", "`driver/ops/ops.h`", "`runtime/core/`", "`gone.c`"):
            self.assertEqual(len(self.found(f"See {text}.")), 1, text)

    def test_paths_from_the_root_or_the_page_and_names_are_right(self) -> None:
        for text in ("`driver/pool/`", "`runtime/driver/pool/pool.c`", "`pool.h`", "`ci/tidy.py`",
                     "`build/tollens`", "`kernels/*/x.cu`", "`a / b`", "`2/3 of it`"):
            self.assertEqual(self.found(f"See {text}."), [], text)


if __name__ == "__main__":
    sys.exit(unittest.main())
