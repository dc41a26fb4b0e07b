"""What a release promises: bytes that depend on contents alone, sums that notice a changed byte, a
bill of materials that others can read.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import unittest

import release
import sbom
from contents import BUILD, Unmade, python_with, version
from stable_archive import SUMS, differences, pack, write_sums
import trial

WHEN = 1700000000
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def furnish(folder: pathlib.Path, names: list[str], mode: int, when: int) -> None:
    """The same contents, made in another order, at another time, with other modes."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"of {name}\n" * 1000)
        path.chmod(mode | (0o111 if name.endswith("program") else 0))
        os.utime(path, (when, when))
    (folder / "lib/link").symlink_to("a.so")


class Release(trial.Trial):
    def some_files(self, name: str) -> pathlib.Path:
        folder = self.folder / name
        folder.mkdir()
        (folder / "tollens.whl").write_bytes(bytes(range(256)) * 100)
        (folder / "tollens-bundle.tar.xz").write_bytes(b"bundle" * 1000)
        return folder

    def test_an_archive_depends_on_contents_alone(self) -> None:
        names = ["lib/a.so", "program", "b/c/d", "z", "A"]
        furnish(self.folder / "one", names, 0o644, 1000000000)
        furnish(self.folder / "two", names[::-1], 0o600, 1600000000)
        for name in ("one", "two"):
            pack(self.folder / name, "top", WHEN, self.folder / f"{name}.tar.xz")
        self.assertEqual((self.folder / "one.tar.xz").read_bytes(),
                         (self.folder / "two.tar.xz").read_bytes())
        with tarfile.open(self.folder / "one.tar.xz") as archive:
            found = {one.name: one for one in archive.getmembers()}
        self.assertEqual(list(found), sorted(found))
        self.assertEqual(found["top/program"].mode, 0o755)
        self.assertEqual(found["top/z"].mode, 0o644)
        self.assertEqual(found["top/lib/link"].linkname, "a.so")
        self.assertTrue(all(one.mtime == WHEN and one.uid == 0 and one.uname == "root"
                            for one in found.values()))

    def test_a_changed_byte_is_noticed(self) -> None:
        one, two = self.some_files("one"), self.some_files("two")
        write_sums(one)
        write_sums(two)
        self.assertEqual(differences(one, two), [])
        self.expect(0, "", "sha256sum", "--quiet", "-c", SUMS, cwd=two)
        content = bytearray((two / "tollens.whl").read_bytes())
        content[20000] ^= 1
        (two / "tollens.whl").write_bytes(content)
        self.expect(1, "tollens.whl: FAILED", "sha256sum", "--quiet", "-c", SUMS, cwd=two)
        self.assertEqual(differences(one, two),
                         ["tollens.whl differs from byte 20000 on (25600 and 25600 bytes)"])
        (two / "tollens.whl").unlink()
        (two / "other").write_text("")
        self.assertEqual(len(differences(one, two)), 2)

    @unittest.skipUnless(shutil.which("abidiff"), "libabigail is not installed")
    def test_a_function_that_is_gone_or_changed_is_noticed(self) -> None:
        header, bits = self.folder / "x.h", {}
        for name, text in (("first", "int a(int); int b(int);"),
                           ("grown", "int a(int); int b(int); int c(int);"),
                           ("gone", "int a(int);"), ("changed", "int a(long); int b(int);")):
            code = self.folder / f"{name}.c"
            header.write_text(text + "\n")
            bodies = text.replace("int);", "int x) { return (int)x; }")
            code.write_text(f'#include "x.h"\n{bodies.replace("long);", "long x) { return 0; }")}')
            library = self.folder / f"{name}.so"
            subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-o", str(library), str(code)],
                           check=True)
            if name == "first":
                (self.folder / "first.abi").write_bytes(release.interface(library, self.folder))
            bits[name], _ = self.run_it("abidiff", "--headers-dir2", ".", "first.abi", library)
        # abidiff's bits: 1 and 2 it failed, 4 something differs, 8 what differs breaks programs.
        self.assertEqual((bits["first"], bits["grown"] & ~4), (0, 0))
        self.assertTrue(bits["gone"] & 8 and bits["changed"] & 4, bits)

    def test_the_bill_names_every_file_and_library(self) -> None:
        folder = self.some_files("one")
        target = self.folder / "tollens.spdx.json"
        files = sorted(folder.iterdir())
        libraries = ["libcriterion.a", "nobodys.so"]
        sbom.write(files, libraries, COMMIT, WHEN, "12.2.0", target)
        first = target.read_bytes()
        sbom.write(files, libraries, COMMIT, WHEN, "12.2.0", target)
        self.assertEqual(first, target.read_bytes())
        bill = json.loads(first)
        packages = {one["name"]: one for one in bill["packages"]}
        self.assertEqual(bill["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        self.assertEqual(packages["tollens"]["versionInfo"], version())
        self.assertEqual(len(packages["tollens.whl"]["checksums"][0]["checksumValue"]), 64)
        self.assertIn("nobodys.so", packages)
        contained = {one["relatedSpdxElement"] for one in bill["relationships"]
                     if one["relationshipType"] == "CONTAINS"
                     and one["spdxElementId"] == packages["tollens.whl"]["SPDXID"]}
        self.assertEqual(len(contained), 2)
        try:
            python = python_with(BUILD / "spdx", "spdx-tools==0.8.3")
        except Unmade as error:
            print(f"not run here: the bill of materials read by spdx-tools: {error}")
            return
        for wanted, text in ((0, first), (1, first.replace(b"SPDX-2.3", b"SPDX-9")),
                             (1, first.replace(b"SPDXRef-Source", b"SPDXRef_Source"))):
            target.write_bytes(text)
            code, said = self.run_it(python.with_name("pyspdxtools"), "-i", target)
            self.assertEqual(min(code, 1), wanted, said)


if __name__ == "__main__":
    unittest.main()
