#!/usr/bin/env python3
"""Writes runtime/models/tokenizer/unicode_ranges.def: letters, accents, numbers, punctuation and
symbols, from the Unicode database of the package unicodedata2.

    python3 -m venv venv && venv/bin/pip install unicodedata2==15.1.0
    venv/bin/python ci/tidying/unicode_ranges.py

Version 15.1 is the one that llama.cpp has, which the tokenizers are compared with.
"""

import pathlib
import sys

import unicodedata2

PATH = (pathlib.Path(__file__).resolve().parents[2] /
        "runtime/models/tokenizer/unicode_ranges.def")
CLASSES = {"L": "LETTER", "M": "ACCENT", "N": "NUMBER", "P": "PUNCTUATION", "S": "SYMBOL"}
HEAD = """/*
 * The code points of the general categories L, M (accents), N, P and S (symbols) in
 * Unicode {version}. Written by ci/tidying/unicode_ranges.py; do not edit.
 * UNICODE_RANGE(first, last, class), ascending.
 */
"""


def ranges() -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for code in range(0x110000):
        kind = CLASSES.get(unicodedata2.category(chr(code))[0])
        if kind is None:
            continue
        if found and found[-1][1] == code - 1 and found[-1][2] == kind:
            found[-1] = (found[-1][0], code, kind)
        else:
            found.append((code, code, kind))
    return found


def main() -> int:
    rows = [f"UNICODE_RANGE(0x{first:05x}, 0x{last:05x}, {kind})" for first, last, kind in ranges()]
    PATH.write_text(HEAD.format(version=unicodedata2.unidata_version) + "\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
