"""Tests of the list of published runs: python3 -m unittest reports.published_index_test."""

import pathlib
import subprocess
import tempfile
import unittest

from reports import published_index


class Index(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.published = pathlib.Path(made.name)
        self.folder = self.published / "2026-01-02-gpu"
        self.folder.mkdir()
        (self.folder / "b.txt").write_text("b\n")
        (self.folder / "a.txt").write_text("a\n")
        self.row = published_index.row_of(self.folder).replace('shows = ""', 'shows = "a | b"')

    def write(self, text: str) -> None:
        (self.published / "index.toml").write_text(text)

    def test_a_row_is_written_for_a_folder_and_shown(self) -> None:
        self.write(self.row)
        self.assertEqual(list(published_index.load(self.published)), ["2026-01-02-gpu"])
        self.assertRegex(published_index.page(self.published),
                         r"\| 2026-01-02-gpu \|.*\| a \\\| b \| yes \| this one \|")

    def test_what_is_wrong_is_named(self) -> None:
        gone = self.row.replace("2026-01-02", "2026-01-01")
        for text, why in (("", "does not list 2026-01-02-gpu"), (self.row * 2, "twice"),
                          (self.row.replace('sha256 = "', 'sha256 = "0'), "has the SHA-256"),
                          (self.row + gone, "2026-01-01-gpu is gone"),
                          (self.row.replace('code = ""\n', ""), "a row needs the texts"),
                          ("[[run", "index.toml")):
            self.write(text)
            with self.assertRaisesRegex(ValueError, why):
                published_index.load(self.published)
        self.write(self.row + gone.replace('held = ""', 'held = "0123"'))
        self.assertIn("| no | 0123 |", published_index.page(self.published))

    def test_a_folder_without_an_archive_has_the_digest_of_the_pages_command(self) -> None:
        command = published_index.PAGE.split("\n\n")[-2].strip()
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stdout.split()[0], published_index.digest(self.folder))


if __name__ == "__main__":
    unittest.main()
