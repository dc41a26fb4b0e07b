"""Writes logs of HDR histograms, as hdr.py reads them: merged histograms go on to other tools.

Source: HdrHistogram by Gil Tene, and the encoding as HdrHistogram_py's ENCODING.rst describes it.
"""

import base64
import struct
import zlib
from collections.abc import Iterable

from ..hdr import COMPRESSED_V2, HEADER, INFLATED_V2, Histogram

WORD = 0x10  # in a cookie: counts have up to 64 bits
HEAD = ("#[Logged with Tollens]\n#[Histogram log format version 1.3]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n')


def index_of(value: int, lowest: int, digits: int) -> int:
    """The index that counts a value: the inverse of hdr.highest_at."""
    unit = lowest.bit_length() - 1
    half_magnitude = (2 * 10**digits - 1).bit_length() - 1
    bucket = max(0, (value >> unit).bit_length() - half_magnitude - 1)
    return (bucket << half_magnitude) + (value >> (bucket + unit))


def number(value: int) -> bytes:
    """ZigZag LEB128 of at most nine bytes; the ninth carries eight bits."""
    left, out = (value << 1) ^ (value >> 63), bytearray()
    while left >> 7 and len(out) < 8:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left & 0xFF)
    return bytes(out)


def encode(histogram: Histogram) -> str:
    """Counts in the order of their values; a run of n zeros is the number -n."""
    counts, at = bytearray(), 0
    for value, count in histogram.buckets:
        index = index_of(value, histogram.lowest, histogram.digits)
        if index > at:
            counts += number(at - index)
        counts += number(count)
        at = index + 1
    plain = HEADER.pack(INFLATED_V2 | WORD, len(counts), 0, histogram.digits, histogram.lowest,
                        histogram.highest, 1.0) + counts
    packed = zlib.compress(plain)
    return base64.b64encode(struct.pack(">ii", COMPRESSED_V2 | WORD, len(packed)) +
                            packed).decode()


def log(series: Iterable[tuple[str, Histogram]]) -> str:
    """The text of a log. Tags have no commas and no blanks."""
    lines = [HEAD]
    for tag, histogram in series:
        if any(sign in tag for sign in ", \t\r\n"):
            raise ValueError(f"{tag!r} is not a valid tag of a histogram")
        lines.append(f"Tag={tag},0.000,0.000,{histogram.maximum / 1e6:.3f},{encode(histogram)}\n")
    return "".join(lines)
