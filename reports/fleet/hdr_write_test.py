"""Merged histograms are whole: python3 -m unittest reports.fleet.hdr_write_test."""

import pathlib
import random
import subprocess
import tempfile
import unittest

from reports import hdr
from reports.fleet import hdr_write

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# HdrHistogram's own library, where ci/setup check could get it.
LIBRARY = ROOT / "build/hdr/bin/python3"
READER = """
import sys
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600000000000, 3))
while one := reader.get_next_interval_histogram():
    print(one.get_total_count(), one.get_value_at_percentile(50), one.get_max_value())
"""


def drawn(draw: random.Random, count: int, lowest: int = 1, digits: int = 3) -> hdr.Histogram:
    counts: dict[int, int] = {}
    for _ in range(count):
        value = int(draw.lognormvariate(10, 4)) % 3_600_000_000_000
        top = hdr.highest_at(hdr_write.index_of(value, lowest, digits), lowest, digits)
        counts[top] = counts.get(top, 0) + draw.choice((1, 1, 7, 1 << 40))
    return hdr.Histogram(lowest, 3_600_000_000_000, digits, sorted(counts.items()))


class Written(unittest.TestCase):
    def test_a_value_is_counted_where_its_bucket_ends(self) -> None:
        draw = random.Random(1)
        for digits in (1, 2, 3, 5):
            for lowest in (1, 1000, 1024):
                for index in [*range(4096), *(draw.randrange(4096, 60000) for _ in range(500))]:
                    top = hdr.highest_at(index, lowest, digits)
                    self.assertEqual(hdr_write.index_of(top, lowest, digits), index)
                    self.assertEqual(hdr_write.index_of(top + 1, lowest, digits), index + 1)

    def test_what_is_written_is_read_back(self) -> None:
        draw = random.Random(2)
        for count in (0, 1, 3, 500):
            for digits in (1, 3):
                made = drawn(draw, count, 1, digits)
                self.assertEqual(hdr.decode(hdr_write.encode(made)), made)

    def test_the_largest_counts_take_nine_bytes(self) -> None:
        for count in (1, 63, 64, 1 << 54, 1 << 55, 1 << 61, (1 << 62) + 12345):
            made = hdr.Histogram(1, 1000, 3, [(3, count), (9, 1)])
            self.assertEqual(hdr.decode(hdr_write.encode(made)), made)

    def test_published_histograms_survive(self) -> None:
        for tag, one in hdr.read_log(ROOT / "fixtures/hdr/golden.hlog"):
            self.assertEqual(hdr.decode(hdr_write.encode(one)), one, tag)

    def test_a_tag_cannot_break_a_line(self) -> None:
        for tag in ("a,b", "a b", "a\nb"):
            with self.assertRaises(ValueError):
                hdr_write.log([(tag, hdr.Histogram(1, 100, 3))])

    @unittest.skipUnless(LIBRARY.exists(), "ci/setup check has not made build/hdr")
    def test_hdrhistograms_own_library_reads_a_log(self) -> None:
        made = drawn(random.Random(3), 400)
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "a.hlog"
            log.write_text(hdr_write.log([("one", made)]))
            said = subprocess.run([LIBRARY, "-c", READER, log], check=True, text=True,
                                  capture_output=True).stdout.split()
        self.assertEqual(list(map(int, said)),
                         [made.total, made.percentile(50), made.maximum])


if __name__ == "__main__":
    unittest.main()
