"""kernels/PERFORMANCE.md: what benchmarks measured on GPUs, beside the libraries that people use.

Each table has the newest published output of its benchmark for each kind of machine, and for each
shape the kernel that a call chooses by itself.
"""

import json
import pathlib
import re
from collections.abc import Iterable, Sequence

from . import markdown, published_index
from .rates import llama_rates

# The files, newest first in each folder's name; the title; what the ratios compare; the command.
OPERATIONS = (
    (("gemm.txt",), "Products of matrices", "`cublas` is cuBLAS on the same matrices.", "gemm"),
    (("grouped.txt",), "Grouped products",
     "`cublas bf16` is one cuBLAS product of bf16 matrices of the same size.", "grouped"),
    (("attention.txt",), "Attention",
     "`cudnn` and `efficient` are PyTorch's backends. Paged attention is compared with "
     "attention over contiguous keys, packed attention with one call per sequence, e4m3 with fp16, "
     "and one row of q with the driver's copy of 1 GiB (`copy`).", "attention"),
    (("backward.txt",), "Gradients of attention", "`cudnn` is PyTorch's cuDNN backend.",
     "attention_backward"),
    (("softmax.txt",), "Softmax", "`copy` is the driver's copy of 1 GiB, `copying as much` its "
     "copy of the same matrix, and `torch` is PyTorch.", "softmax"),
    (("rmsnorm.txt",), "RMSNorm", "As for softmax.", "rmsnorm"),
    (("argmax.txt",), "Argmax", "As for softmax; the copy also writes the matrix.", "argmax"),
    (("swiglu.txt",), "SwiGLU", "As for softmax; three matrices move.", "swiglu"),
    (("add.txt",), "Addition", "As for SwiGLU.", "add"),
    (("quant.txt", "q4k.txt"), "Quantised products",
     "*Cold* weights are not in the L2 cache, *hot* ones are. `reading as much` is a kernel that "
     "only reads the weights; `dequantise, gemm` converts the weights to fp16 and "
     "calls `kn_gemm`.", "quant"),
)
TEXTS = (
    ("pool.txt", "The pool", "build/bench-pool"),
    ("transfer.txt", "Copies of pageable memory", "build/bench-transfer"),
    ("seal.txt", "Sealed memory", "build/bench-seal"),
    ("watch.txt", "A watch over blocks", "build/bench-watch"),
    ("torch.txt", "PyTorch on the pool", "runtime/driver/torch/on_gpu.sh"),
)
HEAD = """# Performance

Written by `reports/written.py` from the evidence that [the index](../reports/published/INDEX.md)
lists. Each table has the newest run of each kind of machine and, per shape, the kernel that a call
chooses by itself. A ratio above 1 means that the kernel is faster than the peer; both were timed in
turn in the same process or run, and 95 % intervals follow in parentheses. Times are in us. These
figures are not claims; claims and their verdicts are in [RESULTS.md](../reports/RESULTS.md).
"""
ROW = re.compile(r"(\w+) +(.*\S) +(\d+\.\d+) +(\d+\.\d+ (?:TFLOP|GB)/s) *(.*)")
VARIANT = re.compile(r"(.*?)(?: {2,}| (?=(?:(?:paged|packed|e4m3) )?\w+$))(\S.*)")
PICKED = re.compile(r"chosen$|\(chosen\)$|^(?:cold|hot)$| beside ")
CHOSEN = re.compile(r" \(chosen\)$|^chosen$")
STATE = re.compile(r"^(?:cold|hot)$| beside ")  # a shape can have several such rows
INTERVAL = re.compile(r"\((\S+) to (\S+)\)")
Index = dict[str, dict[str, str]]


def newest(names: Sequence[str], index: Index, published: pathlib.Path) -> list[pathlib.Path]:
    """For each kind of machine the first of these files in the newest folder that has any."""
    found: dict[str, pathlib.Path] = {}
    for run in sorted(index, reverse=True):
        paths = [published / run / name for name in names if (published / run / name).is_file()]
        if paths:
            found.setdefault(index[run]["device"], paths[0])
    return [found[device] for device in sorted(found, reverse=True)]


def source(path: pathlib.Path, index: Index) -> tuple[str, str, str]:
    """The device, the commit and the day of a file."""
    row = index[path.parent.name]
    return row["device"], row["code"], row["name"][:10]


Rows = dict[tuple[str, ...], tuple[str, ...]]


def beside(keys: Sequence[str], headings: Sequence[str],
           found: Iterable[tuple[pathlib.Path, Rows]], index: Index) -> str:
    """One row per key, with the columns of each file's device side by side. Each file gives its
    rows by their keys."""
    files = [(path, rows) for path, rows in found if rows]
    if not files:
        return ""
    named = [source(path, index) for path, _ in files]
    notes = [f"{device}: commit {commit}, {day}." for device, commit, day in named]
    cells = [f"{device}: {heading}" for device, _, _ in named for heading in headings]
    every = dict.fromkeys(key for _, rows in files for key in rows)
    blank = ("",) * len(headings)
    body = [(*key, *(cell for _, rows in files for cell in rows.get(key, blank)))
            for key in every]
    return " ".join(notes) + "\n\n" + markdown.table((*keys, *cells), body)


def picked(text: str) -> Iterable[tuple[str, str, str, str, str]]:
    """The shape, kernel, time, rate and ratio of each row of what bench-kernels prints; of each
    shape those that a call picks, or, where the benchmark names none, the first."""
    shapes: dict[str, list[tuple[str, str, str, str, str]]] = {}
    for line in text.splitlines():
        row = ROW.fullmatch(line.strip())
        split = VARIANT.fullmatch(row[2]) if row and row[1] != "copy" else None
        if row and split and not split[2].startswith("reading"):
            shape = " ".join(split[1].split())
            ratios = "; ".join(re.split(r" {2,}", row[5].strip()))
            shapes.setdefault(shape, []).append((shape, split[2], row[3], row[4], ratios))
    for rows in shapes.values():
        yield from [row for row in rows if PICKED.search(row[1])] or rows[:1]


def kernel_table(names: Sequence[str], index: Index, published: pathlib.Path) -> str:
    found: list[tuple[pathlib.Path, Rows]] = []
    for path in newest(names, index, published):
        rows: Rows = {}
        for shape, kernel, us, rate, ratio in picked(path.read_text(encoding="utf-8")):
            kernel = CHOSEN.sub("", kernel)
            if STATE.search(kernel):
                shape, kernel = f"{shape}, {kernel}", ""
            rows[shape,] = kernel, us, rate, INTERVAL.sub("(\\1\N{EN DASH}\\2)", ratio)
        found.append((path, rows))
    headings = ["kernel", "us", "rate", "ratio"]
    if not any(cells[0] for _, rows in found for cells in rows.values()):
        headings = headings[1:]
        found = [(path, {key: cells[1:] for key, cells in rows.items()}) for path, rows in found]
    return beside(("shape",), headings, found, index)


def collective_table(index: Index, published: pathlib.Path) -> str:
    found: list[tuple[pathlib.Path, Rows]] = []
    for path in newest(("bench-collectives.json",), index, published):
        rows: Rows = {}
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            rows[f"{row['call']} {row['type']}", str(row["bytes"])] = tuple(
                f"{row[kind + name]:.2f}" if kind + name in row else ""
                for kind in ("", "processes_") for name in ("us", "of_nccl"))
        found.append((path, rows))
    return beside(("call", "bytes"), ("us", "rate / NCCL's", "us, a process per device",
                                      "rate / NCCL's, a process per device"), found, index)


def peer_table(index: Index, published: pathlib.Path) -> str:
    found: list[tuple[pathlib.Path, Rows]] = [
        (path, {(row["name"],): (f"{row['least']:.4f}",)
                for row in json.loads(path.read_text(encoding="utf-8"))["matrices"]})
        for path in newest(("bench-peers.json",), index, published)]
    return beside(("copies between devices",), ("least of the driver's rate",), found, index)


def model_table(index: Index, published: pathlib.Path) -> str:
    rows = []
    for folder in llama_rates.folders(published):
        for name, (mine, theirs) in llama_rates.compare(folder).items():
            rows.append((folder.name, name, f"{mine:.1f}", f"{theirs:.1f}", f"{mine / theirs:.2f}"))
    return markdown.table(("run", "rate", "tokens/s", "llama.cpp, tokens/s", "ratio"),
                          rows) if rows else ""


def text_block(name: str, index: Index, published: pathlib.Path) -> str:
    texts = []
    for path in newest((name,), index, published):
        device, commit, day = source(path, index)
        text = "\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").splitlines())
        texts.append(f"{device}, commit {commit}, {day}:\n\n```text\n{text}\n```")
    return "\n\n".join(texts)


def page(published: pathlib.Path = published_index.PUBLISHED) -> str:
    index = published_index.load(published)
    parts = [(title, f"{note} `build/bench-kernels --filter {name}` measures the same.",
              kernel_table(names, index, published)) for names, title, note, name in OPERATIONS]
    parts += [
        ("Collectives", "`build/bench-collectives --processes` measures these beside NCCL with the "
         "same number of processes.", collective_table(index, published)),
        ("Copies between devices", "`build/bench-peers` compares them with the driver's copies.",
         peer_table(index, published)),
        ("Models beside llama.cpp", "`tollens model bench` and llama.cpp's own benchmarks on the "
         "same file in the same run: `pp512` reads a prompt of 512 tokens, `tg128 @ 8` writes 128 "
         "tokens for each of 8 sessions.", model_table(index, published))]
    parts += [(title, f"`{command}` prints this.", text_block(name, index, published))
              for name, title, command in TEXTS]
    return HEAD + "".join(f"\n## {title}\n\n{note}\n\n{table}\n"
                          for title, note, table in parts if table)
