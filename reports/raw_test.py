"""Tests of the links to the files of the evidence: python3 -m unittest reports.raw_test."""

import contextlib
import io
import pathlib
import re
import tempfile
import unittest
from urllib.parse import unquote

from reports import __main__ as report
from reports import archive, made_evidence, pack


class Links(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)
        self.run_folder = self.top / "a run #1"
        made_evidence.make(self.run_folder)

    def page(self, *words: object, out: pathlib.Path) -> str:
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(report.main([*map(str, words), "--no-png", "--out", str(out)]), 0)
        return (out / "report.html").read_text()

    def linked(self, page: str, out: pathlib.Path) -> set[pathlib.Path]:
        """What the page links to; all of it must be there."""
        found = {out / unquote(link) for link in re.findall(r'href="([^"#:]+)"', page)}
        for path in found:
            self.assertTrue(path.is_file(), path)
        return {path.resolve() for path in found}

    def all_files(self, folder: pathlib.Path) -> set[pathlib.Path]:
        return {path.resolve() for path in folder.rglob("*")
                if path.is_file() and path.relative_to(folder).parts[0] != "report"}

    def test_every_file_of_a_folder_is_linked_from_wherever_the_report_is(self) -> None:
        files = self.all_files(self.run_folder)
        self.assertGreater(len(files), 10)
        for out in (self.run_folder / "report", self.top / "else/where"):
            self.assertEqual(self.linked(self.page(self.run_folder, out=out), out), files)
        # Once more, now that there is a report: it is no evidence.
        out = self.run_folder / "report"
        self.assertEqual(self.linked(self.page(self.run_folder, out=out), out), files)

    def test_a_row_links_to_the_file_behind_it(self) -> None:
        page = self.page(self.run_folder, out=self.run_folder / "report")
        for link, text in (("H3/attacks/every_size.json", "every size"),
                           ("H3/every_size.launch_1.csv", "launch 1"),
                           ("H3/attacks/every_size.json", "worst, seed 3"),
                           ("H3/every_size.hlog", "ramp"),
                           ("H3/sabotage/copy_flip/verdict.json", "copy_flip")):
            self.assertIn(f'<a href="../{link}">{text}</a>', page)

    def test_files_of_an_archive_are_named_and_linked_once_they_are_unpacked(self) -> None:
        path, out = self.top / archive.NAME, self.top / "out"
        path.write_bytes(archive.packed(pack.files_of(self.run_folder)))
        page = self.page(path, out=out)
        self.assertEqual(self.linked(page, out), {path.resolve()})
        self.assertIn("<li>every_size.hlog <small>", page)
        page = self.page(path, "--unpack", out=out)
        self.assertEqual(self.linked(page, out), self.all_files(out / "evidence"))
        self.assertEqual(len(self.all_files(out / "evidence")),
                         len(self.all_files(self.run_folder)))

    def test_two_archives_are_unpacked_apart(self) -> None:
        out = self.top / "out"
        for name in ("one", "two"):
            made_evidence.make(self.top / name)
            (self.top / f"{name}.tar.xz").write_bytes(
                archive.packed(pack.files_of(self.top / name)))
        page = self.page(self.top / "one.tar.xz", self.top / "two.tar.xz", "--unpack", out=out)
        self.assertEqual(self.linked(page, out),
                         self.all_files(out / "evidence1") | self.all_files(out / "evidence2"))


if __name__ == "__main__":
    unittest.main()
