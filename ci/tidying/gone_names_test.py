#!/usr/bin/env python3
"""What ci/tidying/gone_names.py must find, and what it must let be."""

import pathlib
import sys
import unittest

import gone_names

GONE = ("hyp_folder_make", "hyp_tell_begin", "hyp_repeats_tell", "hyp_wishes", "hyp_wishes_read",
        "hyp_guests_enter", "HYP_GUEST_ATTACKS_MAX", "HYP_HOARD_POOL", "hyp_grinder_end",
        "struct hyp_crowd", "hyp_command_crowd", "soft_wish", "soft_moment", "soft_blow_at",
        "soft_harm", "soft_together", "build/kernel-tour", "kernel_tour.c", "readme_wishes")
SOUND = ("hyp_directory_make(folder)", "hyp_console_begin", "HYP_GUESTS_MAX",
         "hyp_session_program_folder", "hyp_verdict_could_not_tell", "a folder of guests",
         "kernel-sweep")


class GoneNames(unittest.TestCase):
    def test_a_gone_name_is_found(self) -> None:
        for name in GONE:
            found = gone_names.in_line(f"    call({name}, 1);")
            self.assertEqual(len(found), 1, name)
            self.assertIn(found[0][0], name)

    def test_other_names_are_not(self) -> None:
        for text in SOUND:
            self.assertEqual(gone_names.in_line(text), [], text)

    def test_every_pattern_is_tried(self) -> None:
        for pattern, _ in gone_names.PATTERNS:
            self.assertTrue(any(pattern.search(name) for name in GONE), pattern.pattern)

    def test_the_history_keeps_its_words(self) -> None:
        for path, checked in (("ci/CHANGELOG.md", False), ("reports/published/a/run.md", False),
                              ("reports/README.md", True), ("runtime/driver/pool/pool.c", True)):
            self.assertEqual(gone_names.is_checked(pathlib.Path(path)), checked, path)


if __name__ == "__main__":
    sys.exit(unittest.main())
