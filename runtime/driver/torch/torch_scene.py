"""What the tests with PyTorch share: the package's module in a clone, a device, whether it runs
PyTorch's kernels, and work that takes a while.

The tests use copies alone where they can: the soft device runs these, and none of PyTorch's kernels
(they are machine code). So most of them run without a GPU:

    build/tollens soft -- python3 runtime/driver/torch/torch_use_test.py
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "reports/tollens"))
import torch  # noqa: E402
import torch_memory  # noqa: E402

MIB = 1 << 20


def need_device() -> None:
    if not torch.cuda.is_available():
        raise unittest.SkipTest("there is no device")


_has_kernels: bool | None = None


def need_kernels() -> None:
    """Skips a test where the device does not run PyTorch's kernels."""
    global _has_kernels
    if _has_kernels is None:
        try:
            torch.zeros(1, device="cuda").add_(1).cpu()
            _has_kernels = True
        except RuntimeError:
            _has_kernels = False
    if not _has_kernels:
        raise unittest.SkipTest("this device does not run PyTorch's kernels")


def block(size: int, device: int = 0) -> torch.Tensor:
    """An uninitialised block of bytes."""
    return torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")


def pattern(size: int, value: int) -> torch.Tensor:
    """A pinned block of the host with one value, for copies that do not wait."""
    return torch.full((size,), value, dtype=torch.uint8).pin_memory()


def write_long(target: torch.Tensor, value: int, times: int = 60) -> torch.Tensor:
    """Queues the same copy many times on the current stream. The source must be kept until then."""
    source = pattern(target.numel(), value)
    for _ in range(times):
        target.copy_(source, non_blocking=True)
    return source


def holds(target: torch.Tensor, value: int) -> bool:
    """Whether all bytes are the value, after the current stream's work."""
    return bool((target.cpu() == value).all())


def number(name: str, device: int = 0) -> int:
    return torch_memory.statistics(device).get(name, 0)
