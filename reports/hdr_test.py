"""Tests of the reader of histogram logs."""

import base64
import pathlib
import struct
import tempfile
import unittest
import zlib

from reports import hdr
from reports.made_evidence import ROOT


class Histograms(unittest.TestCase):
    def test_another_implementations_log_is_read(self) -> None:
        series = dict(hdr.read_log(ROOT / "fixtures/hdr/golden.hlog"))
        self.assertEqual([h.total for h in series.values()], [1, 1000, 40])
        self.assertEqual(series["one"].percentile(50), 42)
        self.assertTrue(499000 <= series["ramp"].percentile(50) <= 500000)
        self.assertGreaterEqual(series["wide"].maximum, 2**39)
        for histogram in series.values():
            values = [value for value, _ in histogram.buckets]
            self.assertEqual(values, sorted(set(values)))

    @staticmethod
    def encoded(numbers: "list[int]", highest: int = 1 << 40, offset: int = 0,
                cut: int = 0) -> str:
        """A histogram of one value and three digits, with these numbers as its counts."""
        counts = b""
        for number in numbers:
            zigzag = 2 * number if number >= 0 else -2 * number - 1
            while zigzag >= 128:
                counts, zigzag = counts + bytes([zigzag & 127 | 128]), zigzag >> 7
            counts += bytes([zigzag])
        plain = hdr.HEADER.pack(hdr.INFLATED_V2, len(counts), offset, 3, 1, highest, 1.0) + counts
        packed = zlib.compress(plain[:len(plain) - cut])
        return base64.b64encode(
            struct.pack(">ii", hdr.COMPRESSED_V2, len(packed)) + packed).decode()

    def test_counts_beyond_the_shape_are_refused(self) -> None:
        """They would be values of 2^(2^30), which take all memory to compute."""
        found = hdr.decode(self.encoded([-42, 7, -1, 1]))
        self.assertEqual(found.buckets, [(42, 7), (44, 1)])
        self.assertEqual(hdr.decode(self.encoded([(1 << 60) + 1])).percentile(100), 0)
        for text in (self.encoded([-(1 << 40), 1]), self.encoded([1], highest=1),
                     self.encoded([1], offset=1), self.encoded([5, 300], cut=1),
                     self.encoded([1] * 100_000), self.encoded([(1 << 62) - 1] * 3)):
            with self.assertRaises(ValueError):
                hdr.decode(text)

    def test_damage_is_named(self) -> None:
        for text in ("", "HISTFAAA", "HISTFAAAACN4nJNpmSzM", "not base64!", "AAAA" * 30):
            with self.assertRaises(ValueError, msg=text):
                hdr.decode(text)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "bad.hlog")
            path.write_text("#comment\nTag=a,0,1,2,oops\n")
            with self.assertRaisesRegex(ValueError, "line 2"):
                hdr.read_log(path)


if __name__ == "__main__":
    unittest.main()
