"""What PyTorch has of bench-kernels' problems: its row kernels, and attention by cuDNN.

Inputs are normally distributed; a launch takes the next set of them, and all sets together are
three times the L2 cache. Launches below SHORT_US go as a CUDA graph, for PyTorch takes longer to
launch them than they take; each then has outputs of its own. Results are checked as they were
timed, against float64: some rows, and of gradients all heads that share one head of keys.
"""

import contextlib
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

SETS_MAX, SHORT_US, CAPTURED_MIN, EPSILON = 64, 300.0, 16, 1e-5
Tensors = tuple[Any, ...]


# ---- the device ----------------------------------------------------------------------------------

def on_gpu() -> bool:
    return bool(torch.cuda.is_available())


def device() -> str:
    return "cuda" if on_gpu() else "cpu"


def type_of(name: str) -> Any:
    return {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[name]


def sets_of(set_bytes: int) -> int:
    cache = torch.cuda.get_device_properties(0).L2_cache_size if on_gpu() else 0
    return max(2, min(SETS_MAX, 3 * cache // set_bytes + 1))


def drawn(*shape: int, dtype: Any) -> Any:
    return torch.randn(*shape, device=device(), dtype=dtype)


def chosen(backend: Any) -> Any:
    """A context in which attention goes by it."""
    return contextlib.nullcontext() if backend is None else sdpa_kernel(backend)


def relative(got: list[Any], wanted: list[Any]) -> float:
    """The largest ratio of the norm of differences and that of what is right; infinite for NaN."""
    ratios = [float((one.double() - other).norm() / other.norm())
              for one, other in zip(got, wanted, strict=True)]
    return max(ratios) if all(map(math.isfinite, ratios)) else math.inf


# ---- timing --------------------------------------------------------------------------------------

class Cannot(Exception):
    """Why a problem cannot be timed."""


class Timed:
    """Sets of inputs, a launch on one of them, and what is right."""

    def __init__(self, name: str, sets: list[Tensors], launch: Callable[..., Any],
                 deviation: Callable[[Tensors, Any], float], tolerance: float,
                 backend: Any = None, may_capture: bool = True) -> None:
        self.name, self.sets, self.launch = name, sets, launch
        self.deviation, self.tolerance = deviation, tolerance
        self.backend = backend
        self.graph: Any = None
        self.outputs: list[Any] = []  # of the launches in the graph, or of the last launch
        self.turn = 0
        with chosen(self.backend):
            for inputs in sets:
                self.outputs = [launch(*inputs)]
            few = 8 if on_gpu() else 1
            if on_gpu() and may_capture and self.time(few) < SHORT_US:
                self.capture()

    def capture(self) -> None:
        rounds = math.ceil(CAPTURED_MIN / len(self.sets))
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            self.outputs = [self.launch(*inputs) for inputs in self.sets * rounds]
        self.graph = graph

    def work(self, launches: int) -> int:
        """Does at least so many launches, and returns how many it did."""
        if self.graph:
            replays = math.ceil(launches / len(self.outputs))
            for _ in range(replays):
                self.graph.replay()
            return replays * len(self.outputs)
        for _ in range(launches):
            self.turn = (self.turn + 1) % len(self.sets)
            self.outputs = [self.launch(*self.sets[self.turn])]
        return launches

    def time(self, launches: int) -> float:
        """Microseconds of one launch."""
        if not on_gpu():
            begin_s = time.perf_counter()
            done = self.work(launches)
            return (time.perf_counter() - begin_s) * 1e6 / done
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        done = self.work(launches)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / done

    def batch(self, launches: int) -> float:
        with chosen(self.backend):
            return self.time(launches)

    def check(self) -> str:
        """Of the last outputs; "" if they are right."""
        index = (len(self.outputs) - 1) % len(self.sets) if self.graph else self.turn
        deviation = self.deviation(self.sets[index], self.outputs[-1])
        if deviation <= self.tolerance:
            return ""
        return f"{self.name} deviates by {deviation:.3g}, more than {self.tolerance:.3g}"


# ---- rows ----------------------------------------------------------------------------------------

def row_problem(kind: str, type_name: str, rows: int, columns: int) -> Timed:
    dtype, some = type_of(type_name), min(rows, 64)
    weight = drawn(columns, dtype=dtype)
    calls: dict[str, Callable[..., Any]] = {
        "softmax": lambda x: F.softmax(x, dim=-1),
        "layernorm": lambda x: F.layer_norm(x, (columns,), weight.to(x.dtype), None, EPSILON),
        "rmsnorm": lambda x: F.rms_norm(x, (columns,), weight.to(x.dtype), EPSILON),
        "swiglu": lambda x, y: F.silu(x) * y,
        "add": torch.add,
        "argmax": lambda x: torch.argmax(x, dim=-1),
        "top_64": lambda x: torch.topk(x, 64, dim=-1)}
    if kind not in calls:
        raise Cannot(f"there is no {kind}")
    inputs, moves = (2, 3) if kind in ("swiglu", "add") else (1, 2)
    if kind in ("argmax", "top_64"):
        moves = 1

    def deviation(given: Tensors, got: Any) -> float:
        exact = [x[:some].double() for x in given]
        if kind == "argmax":  # of equal ones any
            chosen = exact[0].gather(-1, got[:some, None])[:, 0]
            return float((exact[0].amax(dim=-1) - chosen).abs().max())
        if kind == "top_64":
            chosen = exact[0].gather(-1, got[1][:some])
            largest = exact[0].sort(dim=-1, descending=True)[0][:, :64]
            return float((largest - chosen).abs().max())
        return relative([got[:some]], [calls[kind](*exact)])

    sets = [tuple(drawn(rows, columns, dtype=dtype) for _ in range(inputs))
            for _ in range(sets_of(moves * rows * columns * dtype.itemsize))]
    tolerance = 0.0 if moves == 1 else 1e-5 if type_name == "f32" else 1e-2
    return Timed("torch" if on_gpu() else "torch on the CPU", sets, calls[kind], deviation,
                   tolerance)


# ---- attention -----------------------------------------------------------------------------------

def exact_attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """[..., rows, elements], with rows aligned to the end of the keys."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device)
        scores = scores.masked_fill(~seen.tril(k.shape[-2] - q.shape[-2]), -math.inf)
    return torch.softmax(scores, dim=-1) @ v


def attention_problem(backward: bool, type_name: str, sizes: list[int], causal: bool) -> Timed:
    """PyTorch aligns causal rows to the beginning of the keys, so one row sees all, and others are
    timed only if there are as many rows as keys."""
    batch, heads, kv_heads, rows, keys, elements = sizes
    dtype, group = type_of(type_name), heads // kv_heads
    if causal and rows not in (1, keys):
        raise Cannot("its causal rows are aligned to the beginning of the keys")
    options = {"is_causal": causal and rows > 1, "enable_gqa": group > 1}
    q_shape, k_shape = (batch, heads, rows, elements), (batch, kv_heads, keys, elements)

    def forward(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, **options)

    def forward_deviation(given: Tensors, got: Any) -> float:
        some = slice(-min(rows, 8), None)  # the last ones: their keys are all
        q, k, v = (x[-1].double() for x in given)
        wanted = [exact_attention(q[h, some], k[h // group], v[h // group], causal)
                  for h in (0, heads - 1)]
        return relative([got[-1, h, some] for h in (0, heads - 1)], wanted)

    def backward_deviation(given: Tensors, got: Any) -> float:
        _, d_out, q, k, v = given
        exact = [x.detach()[-1, part].double().requires_grad_() for x, part in (
            (q, slice(0, group)), (k, slice(0, 1)), (v, slice(0, 1)))]
        out = exact_attention(*exact, causal)
        wanted = torch.autograd.grad(out, exact, d_out[-1, :group].double())
        return relative([got[0][-1, :group], got[1][-1, :1], got[2][-1, :1]], list(wanted))

    def make(name: str, backend: Any) -> Timed:
        size = 2 * (math.prod(q_shape) + math.prod(k_shape)) * dtype.itemsize
        count = sets_of(2 * size if backward else size)
        inputs = [tuple(drawn(*shape, dtype=dtype).requires_grad_(backward)
                        for shape in (q_shape, k_shape, k_shape)) for _ in range(count)]
        tolerance = 1e-4 if type_name == "f32" else 2e-2
        if not backward:
            return Timed(name, inputs, forward, forward_deviation, tolerance, backend)
        with chosen(backend):
            sets = [(forward(*three), drawn(*q_shape, dtype=dtype), *three) for three in inputs]
        return Timed(name, sets, lambda out, d_out, *three: torch.autograd.grad(
            out, three, d_out, retain_graph=True), backward_deviation, tolerance, backend,
            may_capture=False)

    if not on_gpu():
        return make("torch on the CPU", None)
    reasons = []
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION),
                          ("flash", SDPBackend.FLASH_ATTENTION),
                          ("efficient", SDPBackend.EFFICIENT_ATTENTION)):
        try:
            return make(name, backend)
        except RuntimeError as error:
            print(f"torch_peer: {name}: {error}", file=sys.stderr)
            reasons.append(name)
    raise Cannot(f"none of {', '.join(reasons)} takes it")


def find(words: list[str]) -> Timed:
    """The problem that is spelled so. Cannot, RuntimeError: it cannot be timed."""
    torch.manual_seed(1)
    if on_gpu():
        torch.cuda.empty_cache()
    match words:
        case ["row", kind, type_name, rows, columns]:
            return row_problem(kind, type_name, int(rows), int(columns))
        case ["attention" | "attention_backward" as kind, type_name, *sizes, causal] if (
                len(sizes) == 6):
            return attention_problem(kind == "attention_backward", type_name,
                                     [int(size) for size in sizes], causal == "1")
    raise Cannot("it does not know the problem")
