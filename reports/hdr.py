"""Reads logs of HDR histograms: compressed V2 histograms in log format 1.x.

Source: HdrHistogram by Gil Tene, and the encoding as HdrHistogram_py's ENCODING.rst describes it.
"""

import base64
import binascii
import functools
import re
import struct
import zlib
from dataclasses import dataclass, field

from .archive import Folder

COMPRESSED_V2 = 0x1C849304
INFLATED_V2 = 0x1C849303
HEADER = struct.Struct(">iiiiqqd")
BYTES_MAX = 16 << 20  # of a histogram's counts, as the harness reads them
KNOWN_MAX = 1 << 16   # of results that are kept for the next time


def cookie_base(cookie: int) -> int:
    return cookie & ~0xF0


@dataclass
class Histogram:
    """Counts by value: (highest value of the bucket, count), ascending, without empty buckets."""

    lowest: int
    highest: int
    digits: int
    buckets: list[tuple[int, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum([count for _, count in self.buckets])  # half the time of a generator

    @property
    def maximum(self) -> int:
        return self.buckets[-1][0] if self.buckets else 0

    def percentile(self, percent: float) -> int:
        """The upper end of the bucket that this percentage of all values does not exceed."""
        # A float near 2^63 is not the total.
        wanted = self.total if percent >= 100 else max(1, int(percent / 100 * self.total + 0.5))
        seen = 0
        for value, count in self.buckets:
            seen += count
            if seen >= wanted:
                return value
        return self.maximum

    def merged(self, other: "Histogram") -> "Histogram":
        """The sum of both histograms. ValueError if their buckets differ."""
        if (self.lowest, self.digits) != (other.lowest, other.digits):
            raise ValueError(f"histograms of {self.digits} digits from {self.lowest} and of "
                             f"{other.digits} from {other.lowest} do not have the same buckets")
        counts = dict(self.buckets)
        for value, count in other.buckets:
            counts[value] = counts.get(value, 0) + count
        return Histogram(self.lowest, max(self.highest, other.highest), self.digits,
                         sorted(counts.items()))

    def curve(self) -> tuple[list[float], list[int]]:
        """For each bucket, the share of values up to it, in (0, 1], and its value."""
        shares, values, seen, total = [], [], 0, self.total
        for value, count in self.buckets:
            seen += count
            shares.append(seen / total)
            values.append(value)
        return shares, values


def zigzag_number(data: bytes, at: int) -> tuple[int, int]:
    """A LEB128 number of at most nine bytes, of which the ninth carries eight bits, and where it
    ends."""
    value = shift = 0
    for place in range(9):
        if at >= len(data):
            raise ValueError("a count is cut off")
        byte = data[at]
        at += 1
        if place == 8:
            value |= byte << shift
            break
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return (value >> 1) ^ -(value & 1), at


class Numbers(dict[bytes, int]):
    """The number of each encoding seen so far; ValueError for one that is cut off."""

    def __missing__(self, encoded: bytes) -> int:
        number, _ = zigzag_number(encoded, 0)
        if len(self) < KNOWN_MAX:
            self[encoded] = number
        return number


# Each byte belongs to one encoding; only the last one may be cut off.
ENCODED = re.compile(rb"[\0-\x7f]|[\x80-\xff]{1,7}[\0-\x7f]|[\x80-\xff]{8}[\0-\xff]|[\x80-\xff]+")
NUMBERS = Numbers()


def highest_at(index: int, lowest: int, digits: int) -> int:
    """The largest value that an index counts."""
    unit = lowest.bit_length() - 1
    half_magnitude = (2 * 10**digits - 1).bit_length() - 1
    half = 1 << half_magnitude
    bucket = (index >> half_magnitude) - 1
    sub = (index & (half - 1)) + half
    if bucket < 0:
        bucket, sub = 0, sub - half
    return ((sub + 1) << (bucket + unit)) - 1


class Shape(dict[int, int]):
    """highest_at of the indexes seen so far, for histograms of one shape. ValueError beyond its
    end, where the table would exhaust memory."""

    def __init__(self, lowest: int, highest: int, digits: int) -> None:
        super().__init__()
        self.lowest, self.digits = lowest, digits
        self.end = count_of_counts(lowest, highest, digits)

    def check(self, index: int) -> None:
        if index > self.end:
            raise ValueError("a histogram has more counts than its shape")

    def __missing__(self, index: int) -> int:
        self.check(index + 1)
        value = highest_at(index, self.lowest, self.digits)
        if len(self) < KNOWN_MAX:
            self[index] = value
        return value


shape_of = functools.lru_cache(maxsize=16)(Shape)  # logs of one program have the same few shapes


def count_of_counts(lowest: int, highest: int, digits: int) -> int:
    """How many counts a histogram of that shape has: as many as cover its highest value."""
    magnitude = (2 * 10**digits - 1).bit_length()
    outside, buckets = 1 << (magnitude + lowest.bit_length() - 1), 1
    while outside <= highest:
        outside, buckets = outside << 1, buckets + 1
    return (buckets + 1) << (magnitude - 1)


def inflated(text: str) -> bytes:
    """The histogram without Base64, outer header and compression."""
    try:
        packed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", packed)
        if cookie_base(cookie) != COMPRESSED_V2 or not 0 <= length <= len(packed) - 8:
            raise ValueError("this is not a compressed V2 histogram")
        stream = zlib.decompressobj()
        plain = stream.decompress(packed[8:8 + length], BYTES_MAX)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"a histogram cannot be decoded: {error}") from error
    if not stream.eof:
        raise ValueError("a histogram is cut off, or too large")
    return plain


def decode(text: str) -> Histogram:
    plain = inflated(text)
    if len(plain) < HEADER.size:
        raise ValueError("a histogram has no header")
    cookie, length, offset, digits, lowest, highest, _ = HEADER.unpack_from(plain)
    if (cookie_base(cookie) != INFLATED_V2 or offset != 0 or not 1 <= digits <= 5 or lowest < 1
            or highest < 2 * lowest or lowest.bit_length() + (2 * 10**digits - 1).bit_length() > 63
            or not 0 <= length <= len(plain) - HEADER.size):
        raise ValueError("this is not a V2 histogram")
    shape, index = shape_of(lowest, highest, digits), 0
    buckets: list[tuple[int, int]] = []
    value_at, keep = shape.__getitem__, buckets.append  # looked up once: there are many numbers
    for number in map(NUMBERS.__getitem__, ENCODED.findall(plain, HEADER.size,
                                                           HEADER.size + length)):
        if number > 0:
            keep((value_at(index), number))
            index += 1
        else:
            index += -number or 1  # a run of zeros, or one
    shape.check(index)
    histogram = Histogram(lowest, highest, digits, buckets)
    if histogram.total >= 1 << 63:
        raise ValueError("a histogram has more values than 63 bits count")
    return histogram


def read_log(path: Folder) -> list[tuple[str, Histogram]]:
    """The tagged histograms of a log. ValueError names the file and the line."""
    series = []
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a histogram log: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line or line[0] in '#"':
            continue
        tag = ""
        if line.startswith("Tag="):
            tag, _, line = line[4:].partition(",")
        fields = line.split(",")
        try:
            if len(fields) != 4:
                raise ValueError("a field is missing")
            series.append((tag, decode(fields[3])))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    return series
