"""The page of the site that shows what benchmarks printed on a GPU: of each the newest output that
is published under reports/published, as it is, with a link to its folder."""

import pathlib
import re

from contents import ROOT

PUBLISHED = "reports/published"
# The file, its title, what the columns are, and the command that prints it.
OUTPUTS = (
    ("gemm.txt", "Products of matrices",
     "The kernel, the median in microseconds, and the share of cuBLAS with its interval: cuBLAS "
     "and the kernel were timed in turn. `(chosen)` is what a call picks by itself.",
     "build/bench-kernels --filter gemm"),
    ("kernels.txt", "Attention, rows and quantised products",
     "The kernel, the median in microseconds, and the share of the driver's copy where memory is "
     "the bound.", "build/bench-kernels"),
    ("transfer.txt", "Copies between host and device",
     "Ordinary memory beside pinned memory and beside the driver's own copy.",
     "build/bench-transfer"),
    ("streams.txt", "Threads, batches, traces and pipelines", "", "build/bench-streams"),
    ("pool.txt", "The pool", "Pairs of an allocation and a free, and walks of many, beside the "
     "driver's pool.", "build/bench-pool"),
    ("model.txt", "A model decodes",
     "Tokens a second of prompts (`pp`) and of steps (`tg`) of one, 8 and 32 sessions; the "
     "median and the 99th percentile of a step. llama.cpp's programs on the same file follow.",
     "build/tollens model bench FILE"),
    ("llama-bench.txt", "llama.cpp: prompts, and one session", "", "llama-bench -fa 1"),
    ("llama-batched.txt", "llama.cpp: many sessions", "", "llama-batched-bench -fa on"),
    ("bench-peers.txt", "Copies between GPUs", "The runtime's beside the driver's, pair by pair.",
     "build/bench-peers"),
    ("bench-collectives.txt", "Collectives", "Beside NCCL in as many processes; `of NCCL` is the "
     "share of its rate.", "build/bench-collectives --processes"),
    ("seal.txt", "Sealed memory", "Sealing, opening and verifying, and products of sealed "
     "weights, by rounds of ChaCha.", "build/bench-seal"),
)


def newest(name: str, published: pathlib.Path) -> pathlib.Path | None:
    """The file of this name in the newest folder: their names begin with the day."""
    found = [path for path in published.glob(f"*/{name}") if re.match(r"\d{4}-", path.parent.name)]
    return max(found, key=lambda path: path.parent.name, default=None)


def page(published: pathlib.Path = ROOT / PUBLISHED) -> str:
    text = ("# Performance\n\nWhat the benchmarks printed on GPUs, as it is. Each table is from "
            "one run of one machine, and the link leads to its evidence. Verdicts about speed are "
            "those of the [claims](claims.md), not of this page.\n")
    for name, title, columns, command in OUTPUTS:
        path = newest(name, published)
        if path is None:
            continue
        folder = path.parent.name
        text += f"\n## {title}\n\n{columns}\n\n" if columns else f"\n## {title}\n\n"
        text += (f"From [`{folder}`]({PUBLISHED}/README.md), {folder[:10]}. `{command}` measures "
                 f"the same here.\n\n```text\n{path.read_text().rstrip()}\n```\n")
    return text
