"""Tests of evidence archives: python3 -m unittest reports.archive_test, from the top folder."""

import io
import lzma
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

from reports import archive, evidence, made_evidence, pack

PUBLISHED = made_evidence.ROOT / "reports/published"


def tar(*members: tuple[str, bytes, bytes]) -> bytes:
    """An archive of members: name, type, and contents or a link's target."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as file:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind == tarfile.REGTYPE:
                member.size = len(data)
            else:
                member.linkname = data.decode()
            file.addfile(member, io.BytesIO(data))
    return lzma.compress(plain.getvalue())


class Archives(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)
        self.folder, self.path = self.top / "evidence", self.top / archive.NAME
        made_evidence.make(self.folder, manifest=True)

    def run_program(self, *words: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, "-m", *map(str, words)], text=True,
                              cwd=made_evidence.ROOT, capture_output=True, check=False)

    def refused(self, data: bytes) -> str:
        self.path.write_bytes(data)
        with self.assertRaises(ValueError) as caught:
            evidence.read(self.path)
        said = str(caught.exception)
        self.assertNotIn("\n", said)
        self.assertIn(str(self.path), said)
        return said

    def test_an_archive_is_read_as_its_folder_is(self) -> None:
        self.assertEqual(self.run_program("reports.pack", self.folder, self.top).returncode, 0)
        reports = []
        for name, place in (("a", self.folder), ("b", self.path), ("c", self.top)):
            done = self.run_program("reports", place, "--no-png", "--out", self.top / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            texts = [(self.top / name / file).read_text() for file in ("report.html", "report.md")]
            # A page cannot link to a file in an archive: reports/raw_test.py.
            links = r'<a href="\.\./.*?">(.*?)</a>|<p class="note">In the archive.*?</p>'
            reports.append([re.sub(links, r"\1", text) for text in texts])
        self.assertEqual(reports[0], reports[1])
        self.assertEqual(reports[0], reports[2])
        done = self.run_program("reports", self.path, "--no-png")
        self.assertEqual(done.stdout, f"report: {self.top / 'report/report.html'}\n")

    def test_an_archive_that_tar_made_is_read_too(self) -> None:
        with tarfile.open(self.path, "w:xz") as file:
            file.add(self.folder, ".")
        self.assertEqual(evidence.read(self.path).claims, evidence.read(self.folder).claims)

    def test_packing_is_deterministic_and_leaves_the_report_out(self) -> None:
        pack.pack(self.folder, self.top / "one")
        (self.folder / "report").mkdir()
        (self.folder / "report/report.md").write_text("x")
        (self.folder / "H3/claim.json").touch()
        pack.pack(self.folder, self.top / "two")
        data = [(self.top / name / archive.NAME).read_bytes() for name in ("one", "two")]
        self.assertEqual(data[0], data[1])
        self.assertEqual((self.top / "one/results.json").read_bytes(),
                         (self.folder / "results.json").read_bytes())
        members = archive.load(self.top / "one" / archive.NAME).files
        self.assertEqual(list(members), sorted(members))

    def test_what_cannot_be_packed_is_one_sentence(self) -> None:
        pack.pack(self.folder, self.top / "out")
        (self.folder / "link").symlink_to("run.json")
        for out, words in ((self.top / "new", "is a link"), (self.top / "out", "is a link")):
            done = self.run_program("reports.pack", self.folder, out)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(words, done.stderr)
        (self.folder / "link").unlink()
        (self.folder / "more").write_text("x")
        with self.assertRaisesRegex(ValueError, "has other evidence in it"):
            pack.pack(self.folder, self.top / "out")
        (self.folder / "results.json").write_text("{")
        with self.assertRaisesRegex(ValueError, "results.json"):
            pack.pack(self.folder, self.top / "new")
        with self.assertRaisesRegex(ValueError, "is not a folder"):
            pack.pack(self.folder / "results.json", self.top / "new")
        self.assertFalse((self.top / "new").exists())

    def test_damaged_and_foreign_archives_are_refused(self) -> None:
        good = archive.packed(pack.files_of(self.folder))
        for at in (0, 5, len(good) // 3, len(good) - 13, len(good) - 1):
            self.refused(good[:at])
        changed = bytearray(good)
        changed[len(good) // 2] ^= 1
        self.refused(bytes(changed))
        self.assertIn("5 bytes follow its end", self.refused(good + b"extra"))
        self.assertIn("cut off", self.refused(good[:-1]))
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as file:
            file.writestr("results.json", "{}")
        for data in (zipped.getvalue(), b"results", lzma.compress(b"results" * 999),
                     lzma.compress(lzma.decompress(good)[:700]), bytes(2048)):
            self.assertIn("is not an evidence archive (.tar.xz): ", self.refused(data))
        self.assertIn("results.json cannot be read: the archive has no such file",
                      self.refused(tar(("other", tarfile.REGTYPE, b"x"))))

    def test_members_that_lead_outside_and_links_are_refused(self) -> None:
        for name in ("../a", "a/../../b", "/etc/a", "a//b", "a\\b", "a\nb", ".."):
            self.assertIn("leads outside", self.refused(tar((name, tarfile.REGTYPE, b"x"))))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE,
                     tarfile.GNUTYPE_SPARSE):
            self.assertIn("link or a special file", self.refused(tar(("a", kind, b"run.json"))))
        self.assertIn("twice", self.refused(tar(("a", tarfile.REGTYPE, b"x"),
                                                ("./a", tarfile.REGTYPE, b"y"))))
        self.assertEqual({path.name for path in self.top.iterdir()},
                         {"evidence", archive.NAME}, "nothing is unpacked")

    def test_absurd_sizes_are_refused(self) -> None:
        good = archive.packed(pack.files_of(self.folder))
        for name, most, words in (("BYTES_MAX", 9000, "unpacks to more than"),
                                  ("BYTES_MAX", 100, "is larger than"),
                                  ("FILES_MAX", 5, "more than 5 members"),
                                  ("MEMORY_MAX", 1 << 16, "imit")):
            with mock.patch.object(archive, name, most):
                self.assertIn(words, self.refused(good))

    def test_damage_inside_names_the_member(self) -> None:
        files = pack.files_of(self.folder)
        for name, data in (("H3/every_size.hlog", b"Tag=a,0,1,2,oops\n"), ("machine.json", None)):
            self.path.write_bytes(archive.packed({key: value for key, value in
                                               {**files, name: data}.items() if value}))
            for words in (["reports"], ["reports", "compare", self.folder]):
                done = self.run_program(*words, self.path, "--out", self.top / "out")
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                self.assertIn(f"{self.path}/{name}", done.stderr)

    def test_places_in_an_archive_are_those_of_a_folder(self) -> None:
        inside = archive.Archived(self.path, pack.files_of(self.folder))

        def names(found: object) -> list[str]:
            return [str(one).split(f"{root}/")[1] for one in sorted(found)]  # type: ignore

        for where in ("H3", "H3/sabotage/copy_flip", "absent"):
            for pattern in ("*.csv", "every_size.*.csv", "attacks/*.json", "**/attacks/*.json"):
                found = []
                for root, top in ((self.folder, self.folder), (self.path, inside)):
                    found.append(names((top / where).glob(pattern)))
                self.assertEqual(found[0], found[1], (where, pattern))
            self.assertEqual((inside / where).exists(), (self.folder / where).exists())
            self.assertEqual((inside / where).is_dir(), (self.folder / where).is_dir())
        self.assertEqual([one.name for one in sorted(inside.iterdir())],
                         [one.name for one in sorted(self.folder.iterdir())])


class Published(unittest.TestCase):
    def test_what_stands_beside_an_archive_is_what_it_has(self) -> None:
        found = sorted(PUBLISHED.glob(f"*/{archive.NAME}"))
        self.assertGreaterEqual(len(found), 7)
        for path in found:
            files = archive.load(path).files
            for name in pack.BESIDE:
                self.assertEqual(path.with_name(name).read_bytes(), files[name], path)

    def test_no_evidence_is_published_unpacked(self) -> None:
        self.assertEqual(list(PUBLISHED.glob("*/evidence")), [])


if __name__ == "__main__":
    unittest.main()
