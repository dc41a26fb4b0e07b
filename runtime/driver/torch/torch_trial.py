"""One load with one allocator, in a separate process. Prints one JSON object.

    torch_trial.py LOAD ALLOCATOR [--steps N] [--seed N] [--limit BYTES [--fit]] [--wait]

The allocators: native, expandable, async (PyTorch's own), tollens, and tollens:1.01 with another
TOLLENS_TORCH_STITCH_ABOVE. With --fit the load grows by 2 % at a time until memory is out. With
--wait it imports PyTorch, and touches the device when a line comes in.
"""

import argparse
import gc
import json
import os
import pathlib
import sys
import time
from typing import Callable

CONFIGURED = {"native": "", "expandable": "expandable_segments:True",
              "async": "backend:cudaMallocAsync"}
GROWTH, FIT_STEPS = 1.02, 6


def configure(allocator: str, limit: int) -> None:
    """Before torch is imported."""
    if allocator in CONFIGURED:
        for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
            os.environ.pop(name, None)
        if CONFIGURED[allocator]:
            # The older of the names, which newer versions read as well.
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = CONFIGURED[allocator]
        return
    if ":" in allocator:
        shares = allocator.split(":")[1:]
        os.environ.update(zip(("TOLLENS_TORCH_STITCH_ABOVE", "TOLLENS_TORCH_WAIT_ABOVE"), shares))
    if limit:
        os.environ["TOLLENS_TORCH_LIMIT"] = str(limit)


class Memory:
    """The statistics of this process's allocator."""

    def __init__(self, allocator: str, limit: int) -> None:
        import torch
        self.torch = torch
        self.is_own = allocator in CONFIGURED
        if not self.is_own:
            here = pathlib.Path(__file__).resolve().parent
            if not (here / "torch_memory.py").exists():  # it lies here in a bundle
                sys.path.insert(0, str(here.parents[2] / "reports/tollens"))
            import torch_memory
            torch_memory.use()
            self.own = torch_memory
        elif limit:
            total = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total))

    def numbers(self) -> dict[str, float]:
        if self.is_own:
            stats = self.torch.cuda.memory_stats()
            reserved = self.torch.cuda.max_memory_reserved()
            allocated = self.torch.cuda.max_memory_allocated()
            more = {"driver_calls": stats.get("num_device_alloc", 0) +
                    stats.get("num_device_free", 0), "retries": stats.get("num_alloc_retries", 0)}
        else:
            stats = self.own.statistics()
            reserved, allocated = stats["reserved_peak"], stats["allocated_peak"]
            more = {name: stats[name] for name in (
                "driver_calls", "driver_ns", "stitched", "stream_waits", "idle", "page_waste",
                "pending", "allocations", "magazine_hits")}
        return {"reserved": reserved, "allocated": allocated,
                "ratio": reserved / max(1, allocated), **more}


def used_by_process(torch: object) -> int:
    free, total = torch.cuda.mem_get_info()  # type: ignore[attr-defined]
    return total - free


def timed(step: Callable[[], None], steps: int) -> dict[str, object]:
    """Milliseconds of each step, from an idle device to an idle device."""
    import torch
    times, used = [], 0
    for _ in range(steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
        used = max(used, used_by_process(torch))
    return {"ms": times, "device_used": used}


def fits(make: Callable[..., Callable[[], None]], scale: float, seed: int) -> bool:
    import torch
    fitted = True
    try:
        step = make("cuda", scale, seed)
        for _ in range(FIT_STEPS):
            step()
        torch.cuda.synchronize()
    except torch.OutOfMemoryError:
        fitted = False
    step = None  # type: ignore[assignment]
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return fitted


def largest(make: Callable[..., Callable[[], None]], seed: int, start: float) -> float:
    """The largest scale that fits, of those 2 % apart: a bisection of their numbers. After an
    error the same process continues, with an empty cache."""
    def scale(number: int) -> float:
        return start * GROWTH ** number

    low, high = 0, 1
    if not fits(make, scale(0), seed):
        return 0.0
    while fits(make, scale(8 * high), seed):
        low, high = 8 * high, 2 * high
    high *= 8
    while high - low > 1:
        middle = (low + high) // 2
        if fits(make, scale(middle), seed):
            low = middle
        else:
            high = middle
    return scale(low)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("load")
    parser.add_argument("allocator")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--start", type=float, default=0.25)
    parser.add_argument("--wait", action="store_true")
    given = parser.parse_args()
    configure(given.allocator, given.limit)
    import torch

    import torch_loads
    if given.wait and not sys.stdin.readline():
        return 0
    if not torch.cuda.is_available():
        print(json.dumps({"failure": "there is no device"}))
        return 0
    torch.manual_seed(given.seed)
    memory = Memory(given.allocator, given.limit)
    make = torch_loads.LOADS[given.load]
    result: dict[str, object] = {"load": given.load, "allocator": given.allocator,
                                 "seed": given.seed, "limit": given.limit}
    try:
        before = used_by_process(torch)
        if given.fit:
            result["largest"] = largest(make, given.seed, given.start)
        else:
            step = make("cuda", 1.0, given.seed)
            result |= timed(step, given.steps)
            result["device_used"] -= before  # type: ignore[operator]
        result |= memory.numbers()
    except RuntimeError as error:
        result["failure"] = f"{type(error).__name__}: {str(error)[:500]}"
    print(json.dumps(result), flush=True)
    os._exit(0)  # what is left goes with the process, whatever the allocator


if __name__ == "__main__":
    sys.exit(main())
