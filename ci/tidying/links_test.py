#!/usr/bin/env python3
"""What ci/tidying/links.py must find, and what it must let be."""

import pathlib
import sys
import tempfile
import unittest

import links

SOUND = ("[a page](other.md)", "[`sum`](code.c)", "[a place](other.md#there)",
         "[out](https://x.org/y)",
         "[here](#below)", "[`folder/`](room)")
BROKEN = {"[a page](none.md)": "leads nowhere", "[`product`](code.c)": "has no product"}


class Links(unittest.TestCase):
    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "room").mkdir()
        (self.root / "other.md").write_text("there\n")
        (self.root / "code.c").write_text("int sum(int a, int b);\nint products;\n")

    def found(self, text: str) -> list[str]:
        return list(links.broken(pathlib.PurePath("README.md"), text, self.root))

    def test_broken_links_are_found(self) -> None:
        for text, words in BROKEN.items():
            found = self.found(f"first\n{text}\n")
            self.assertEqual(len(found), 1, text)
            self.assertIn("README.md:2: ", found[0])
            self.assertIn(words, found[0])

    def test_sound_links_are_not(self) -> None:
        for text in SOUND:
            self.assertEqual(self.found(text), [], text)

    def test_every_link_of_the_tree_leads_somewhere(self) -> None:
        self.assertEqual(links.findings(), [])


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False).result.wasSuccessful() else 1)
