"""Tests of the page of performance."""

import pathlib
import tempfile
import unittest

import performance_page


class Page(unittest.TestCase):
    def test_the_newest_output_of_each_is_shown_once(self) -> None:
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            for name, text in (("2026-01-02-gpu", "old"), ("2026-03-01-gpu", "new"), ("x", "x")):
                (folder / name).mkdir()
                (folder / name / "gemm.txt").write_text(f"rows that are {text}\n")
            text = performance_page.page(folder)
        self.assertIn("rows that are new\n```", text)
        self.assertIn("`2026-03-01-gpu`", text)
        self.assertNotIn("old", text)
        self.assertNotIn("transfer", text)

    def test_what_is_published_has_every_table(self) -> None:
        text = performance_page.page()
        for _, title, _, _ in performance_page.OUTPUTS:
            self.assertIn(f"## {title}", text)


if __name__ == "__main__":
    unittest.main()
