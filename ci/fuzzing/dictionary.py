"""Dictionaries for the fuzz targets, for ci/fuzz: the words of a format are taken from the tables
and the sources that read it, so that none is forgotten when one is added.
"""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOFT = "runtime/soft"
HARNESS = "hypotheses/harness"
LONGEST = 40  # of a word; longer literals are sentences

# The sources whose string literals are words of the format, and pieces that none of them spells.
SOURCES = {
    "ptx": ([], [r"\x0a//====\x0a"]), "run": ([], []),
    "rules": ([f"{SOFT}/state/fault_rule.c", f"{SOFT}/base/functions_memory.def",
               f"{SOFT}/base/functions_stream.def", "runtime/include/tollens/cuda_result.def"],
              ['"rules"', '"quiet"', "true", "each", "cuMem*", "256M"]),
    "options": ([f"{SOFT}/base/options.c"], ["18446744073709551615", "4096G", "K", "M"]),
    "table": ([f"{SOFT}/table/table_read.c", f"{SOFT}/table/table_type.c"], [">1", "{", "|", "}"]),
    "fatbin": ([], [r"\x50\xed\x55\xba\x01\x00\x10\x00", r"\x7fELF\x02\x01\x01\x33", r"\x07tollens",
                    r"\x01\x00\x01\x01\x40\x00\x00\x00", r"\x02\x00\x01\x01\x40\x00\x00\x00",
                    r"\x00\x20\x00\x00", r"\x00\x80\x00\x00", r"\x28\xb5\x2f\xfd"]),
    "elf": ([], [r"\x7fELF\x02\x01\x01", "__cudaRegisterFatBinary", ".nvFatBinSegment"]),
    "tensor": ([], [r"\xf1\x00\x01", r"\xf3\xff\xff\xff\x7f", r"\xf3\x00\x00\x00\x80",
                    r"\xf4\x00\x00\x00\x00\x01", r"\xf7\xff\xff\xff\xff\xff\xff\xff\xff"]),
    "hlog": ([f"{HARNESS}/files/hlog.c"], ["Tag=", "#[BaseTime: ", "HISTFAAA", "nan", "1e400"]),
    "hdr": ([], [r"\x1c\x84\x93\x13", r"\x00\x00\x00\x03", r"\xff\xff\xff\xff"]),
    "results": ([f"{HARNESS}/judge/results.c", f"{HARNESS}/claim/claim.c"],
                ["2147483647", "null", "1e308", "H1", "H12", "violations", "us", "ratio"]),
    "record": ([f"{HARNESS}/record/record.c", f"{HARNESS}/measure/effect.c"],
               ["2147483647", "null", "1e308", "-1"]),
    "trace": ([*(f"{HARNESS}/trace/trace_{name}.c" for name in ("file", "rmm", "snapshot")),
               "runtime/driver/pool/pool_events.c"],
              ["18446744073709551615", ",0,", r"\x00", r"\x80\x04\x95", r"\x8c\x04", r"\x94",
               r"h\x01", r"]q\x01", r"}q\x02"]),
    "gguf": ([f"runtime/models/tokenizer/{name}.c" for name in ("tokenizer_load", "pre_tokenize")],
             ["GGUF", "general.alignment", r"\x03\x00\x00\x00", r"\x09\x00\x00\x00\x08\x00\x00\x00",
              r"\xff\xff\xff\xff\xff\xff\xff\xff", "<0x41>", "<s>"]),
    "chat": ([f"runtime/models/tokenizer/jinja_{name}.c" for name in ("read", "evaluate", "calls")],
             ["{{ ", " }}", "{%- ", " -%}", "{# ", r"\x00", "messages[0].content", "::-1"]),
    "plugin": ([f"{HARNESS}/attack/sabotage_gross.c", f"{HARNESS}/attack/sabotage_rare.c"],
               [r"\x7fELF", "-", "1e400", "nan", "_one_in=10,100"]),
    "words": ([f"{HARNESS}/run/run_options.c", f"{HARNESS}/claim/session.c",
               f"{HARNESS}/attack/sabotage_gross.c"],
             ["H13", "9223372036854775807", "launch_delay_us=3"]),
    "toml": (["reports/thresholds.py"],
             ["[H14]", "[[", "]]", '\\"\\"\\"', "inf", "nan", r"\\u0001"]),
    "demands": (["reports/requirements.py"], ["[[demand]]", "[[citation]]", "[[principle]]"]),
    "manifest": (["reports/integrity.py"], ["==== run.json", "==== manifest.json", "null"]),
    "evidence": (["reports/evidence.py", "reports/tables.py", "reports/integrity.py"],
                 ["==== ", "null", "-1", "[]", "{}"]),
    "report-hlog": (["reports/hdr.py"], ["Tag=", "HISTFAAA"]),
    "report-hdr": ([], [r"\x1c\x84\x93\x13", r"\xff\xff\xff\xff"]),
    "report-table": (["reports/tables.py", "reports/errors.py", "reports/walks.py"],
                     ["nan", "inf", "1_0"]),
    "tar": (["reports/archive.py"], ["ustar", "GNU.sparse.map", "path=", "size=", "../"]),
}
PTX_DIRECTIVES = """
    .version .target .address_size .entry .func .visible .extern .weak .common .alias .file .loc
    .section .pragma .reg .global .const .shared .local .param .align .ptr .maxntid .reqntid
    .minnctapersm .maxnreg .noreturn .callprototype .branchtargets .calltargets .attribute
""".split()
PTX_PIECES = ["8.0", "sm_90", "64", "{", "}", "[", "]", "(", ")", ";", ",", "@!%p1 ", "%r<9>",
              "0x7f", "0f3f800000", "0d3ff0000000000000", "generic(", "%tid.x", "%rd1", "WARP_SZ",
              "/*", "//"]


def ptx_words() -> list[str]:
    """Every instruction and every word that may follow a dot, from the soft device's own lists."""
    folder = ROOT / SOFT / "ptx"
    rows = re.findall(r'^PTX\((\w+), "', (folder / "ptx.def").read_text(), re.MULTILINE)
    modifiers = re.findall(r'^PTX_(?:TYPE|MODIFIER)\(\w+, "([^"]+)"',
                           (folder / "modifier.def").read_text(), re.MULTILINE)
    specials = re.findall(r'"(%[^"]+)"', (folder / "special.def").read_text())
    return [*rows, *(f".{word}" for word in modifiers), *specials, *PTX_DIRECTIVES, *PTX_PIECES]


def literals(path: pathlib.Path) -> list[str]:
    """The short strings of a source, and the first words of the rows of a table."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [node.value for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if path.suffix == ".def":
        return re.findall(r"^\w+\((?:\w+, )??(cu\w+|CUDA_\w+)", text, re.MULTILINE)
    return [word for word in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text) if not word.endswith(".h")]


def quoted(word: str) -> str:
    """As libFuzzer reads it: quotes, backslashes and xAB are escaped by a backslash."""
    if re.fullmatch(r'(\\x[0-9a-f]{2}|\\"|\\\\|[ -!#-\[\]-~])+', word):
        return f'"{word}"'
    plain = word.encode()
    return '"' + "".join(f"\\x{byte:02x}" if byte < 32 or byte > 126 or byte in b'"\\'
                         else chr(byte) for byte in plain) + '"'


def dictionary(target: str) -> str:
    """The text of a dictionary, one entry per line."""
    sources, pieces = SOURCES[target]
    words = ptx_words() if target in ("ptx", "run", "table") else []
    for source in sources:
        words += [word for word in literals(ROOT / source) if "%" not in word]
    words = [word for word in [*words, *pieces] if 0 < len(word) <= LONGEST]
    return "".join(f"{quoted(word)}\n" for word in dict.fromkeys(words))
