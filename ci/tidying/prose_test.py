#!/usr/bin/env python3
"""What tidying/prose.py must find, and what it must leave alone."""

import pathlib
import sys
import unittest

import trial
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


GONE = ("hyp_folder_make", "hyp_tell_begin", "hyp_repeats_tell", "hyp_wishes", "hyp_wishes_read",
        "hyp_guests_enter", "HYP_GUEST_ATTACKS_MAX", "HYP_HOARD_POOL", "hyp_grinder_end",
        "struct hyp_crowd", "hyp_command_crowd", "soft_wish", "soft_moment", "soft_blow_at",
        "soft_harm", "soft_together", "build/kernel-tour", "kernel_tour.c", "readme_wishes")


class GoneNames(unittest.TestCase):
    def found(self, name: str, text: str) -> list[str]:
        return list(prose.gone_names(pathlib.PurePosixPath(name), text))

    def test_a_gone_name_is_found_by_each_pattern(self) -> None:
        for name in GONE:
            for path in ("reports/README.md", "runtime/driver/pool/pool.c"):
                found = self.found(path, f"\n    call({name}, 1);")
                self.assertEqual(len(found), 1, name)
                gone = found[0].removeprefix(f"{path}:2: ").partition(" is gone: ")[0]
                self.assertIn(gone, name)
        for pattern, _ in prose.GONE_NAMES:
            self.assertTrue(any(pattern.search(name) for name in GONE), pattern.pattern)

    def test_other_names_and_the_history_are_left_alone(self) -> None:
        for text in ("hyp_directory_make(folder)", "hyp_console_begin", "HYP_GUESTS_MAX",
                     "hyp_session_program_folder", "hyp_verdict_could_not_tell",
                     "a folder of guests", "kernel-sweep"):
            self.assertEqual(self.found("runtime/a.c", text), [], text)
        self.assertEqual(self.found("ci/CHANGELOG.md", GONE[0]), [])


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


class Links(trial.Trial):
    def found(self, text: str) -> list[str]:
        self.write("room/other.md", "there\n")
        self.write("code.c", "int sum(int a, int b);\nint products;\n")
        page = pathlib.PurePosixPath("README.md")
        return list(prose.broken_links(page, f"first\n{text}\n", self.folder))

    def test_broken_links_are_found(self) -> None:
        for text, words in {"[a page](none.md)": "the link to none.md leads nowhere",
                            "[`product`](code.c)": "code.c has no product"}.items():
            self.assertEqual(self.found(text), [f"README.md:2: {words}"])

    def test_sound_links_are_not(self) -> None:
        for text in ("[a page](room/other.md)", "[`sum`](code.c)", "[a place](code.c#there)",
                     "[out](https://x.org/y)", "[here](#below)", "[`folder/`](room)"):
            self.assertEqual(self.found(text), [], text)


if __name__ == "__main__":
    sys.exit(unittest.main())
