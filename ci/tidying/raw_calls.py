"""Where the driver's functions are called directly, without the checks of the runtime.

A call through the driver's table can break every promise of the runtime: a freed address, a wrong
size, a wait without an end. So it stays in the layer that wraps the driver, and in what measures or
disturbs that layer. ALLOWED says where a call may stand, and why. The soft device is a
driver itself and is not checked.
"""

import re
from collections.abc import Iterator, Mapping

ALLOWED = {
    "runtime/driver/core/": "the layer that wraps the driver",
    "runtime/driver/graph/": "likewise",
    "runtime/driver/objects/": "likewise",
    "runtime/driver/pool/": "likewise",
    "runtime/driver/trace/": "likewise",
    "runtime/driver/transfer/": "likewise",
    "runtime/driver/vram/": "likewise",
    "runtime/driver/watch/": "an interposer: it asks the driver below it for a kernel's parameters",
    "runtime/driver/torch/": "streams, events and captures there are PyTorch's",
    "runtime/driver/test/": "tests of that layer",
    "runtime/driver/bench/": "benchmarks that compare the runtime with the driver's own calls",
    "runtime/include/tollens/driver.h": "declares the table: comparisons need it",
    "hypotheses/harness/attack/": "controls, and saboteurs of the driver",
    "hypotheses/h01_modules_load.c": "compares a message with the driver's own log",
    "hypotheses/h02_launches_execute.c": "asks the driver for more than the runtime would",
    "hypotheses/h04_launches_cost_little.c": "compares calls of the runtime with the driver's own",
    "hypotheses/beyond/memory/": "changes memory without the runtime, and reads all of it",
    "runtime/cublas/": "works in the program's contexts and streams, which are not the runtime's",
    "runtime/models/seal/plain_search.c": "reads all device memory, whoever allocated it",
    "hypotheses/beyond/order/": "saboteurs of the driver, and calls that the runtime does not wrap",
    "hypotheses/beyond/worker/w3_health_tells_the_truth.c": "takes host memory from the driver",
    "hypotheses/beyond/peers/": "compares ways that the runtime does not wrap, and other processes",
    "hypotheses/h12_pool_does_not_fragment.c": "writes and reads blocks past the pool it attacks",
    "kernels/collective/": "orders streams of several contexts, which the runtime keeps apart",
    "kernels/bench/collectives_bench.c": "waits for NCCL's work and ours alike",
    "kernels/bench/collectives_processes.c": "uses memory that is no buffer of the runtime's",
    "kernels/choose/kernel_set.c": "asks the driver how many clusters run at once, no more",
    "kernels/boxes.c": "has the driver write a description, which touches no memory of a device",
}

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
RAW = re.compile(r"(?:->|\.)\s*cu[A-Z]\w*|->raw\b|\bTOL_CU\s*\(|\btol_driver_functions\s*\("
                 r"|\bcu(?:Init|Ctx|Device|Event|Func|Graph|Launch|Mem|Module|Stream)\w*\s*\(")

# What setlocale() changes in libraries: strtod, and numbers in JSON, which has escaped quotes.
OTHERS = r"(?:bench|tools|tune|table|test)/"
LIBRARY = re.compile(rf"(?:runtime/(?:driver|models|soft)|kernels)/(?!{OTHERS})"
                     rf"(?:(?!/{OTHERS}|_(?:test|scene|bench)\.).)*\.[ch]")
READS = re.compile(r"\b(?:strto(?:f|d|ld)|atof)\s*\(")
WRITES = re.compile(r'\\"[^"\n]*%[-+ #0-9.*]*l?[aefgAEFG]')


def in_locale(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each number that depends on the locale."""
    text = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    pattern = READS if "c_locale.h" in text else re.compile(f"{READS.pattern}|{WRITES.pattern}")
    for match in pattern.finditer(text) if LIBRARY.fullmatch(path) else ():
        yield text.count("\n", 0, match.start()) + 1, match.group()


def place(path: str) -> str | None:
    """The entry of ALLOWED that the file stands under."""
    return next((entry for entry in ALLOWED if path == entry or (
        entry.endswith("/") and path.startswith(entry))), None)


def in_c(text: str) -> list[tuple[int, str]]:
    """Line and text of each."""
    for pattern in (COMMENT, TEXT):
        text = pattern.sub(lambda match: "\n" * match.group().count("\n"), text)
    return [(text.count("\n", 0, match.start()) + 1, match.group()) for match in RAW.finditer(text)]


def check(texts: Mapping[str, str]) -> Iterator[str]:
    """A line for each call that stands where none may, and for each entry that none needs."""
    needed = set()
    for path, text in texts.items():
        for number, found_text in in_locale(path, text):
            yield (f"{path}:{number}: {found_text} depends on the program's locale: use "
                   "runtime/driver/core/c_locale.h")
        if path.startswith("runtime/soft/") or path.endswith(".def"):
            continue
        found, where = in_c(text), place(path)
        if found and where:
            needed.add(where)
        for number, call in [] if where else found:
            yield (f"{path}:{number}: {call} calls the driver directly: use the runtime's "
                   "functions, or state the reason in ci/tidying/raw_calls.py")
    for entry in ALLOWED:
        if entry not in needed:
            yield f"ci/tidying/raw_calls.py: {entry} calls no function of the driver"
