"""The conditions of a machine under which a test that a demand names may skip."""

import ctypes
import os
import pathlib
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent


def lacks_cuda_h() -> bool:
    """Whether configure.py found no cuda.h of CUDA 13.0 or newer."""
    config = (ROOT / "build/config.ninja").read_text(encoding="utf-8")
    return "TOL_HAS_CUDA_H" not in config


def has_libcuda() -> bool:
    """Whether the loader finds a file for one of the names of the driver's library."""
    for name in ("libcuda.so.1", "libcuda.so"):
        try:
            ctypes.CDLL(name)
        except OSError as error:
            if "No such file" in str(error):
                continue
        return True
    return False


def is_soft() -> bool:
    return os.environ.get("TOLLENS_DEVICE") == "soft"


# The only reasons for which a test that a demand names may skip: how the reason begins, and whether
# this machine is so. Any other skip means that the test did not run and should have.
CONDITIONS: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("no CUDA toolkit of version 13.0 or newer", lacks_cuda_h),
    ("this machine has a libcuda", has_libcuda),
    ("this machine's libcuda is", has_libcuda),
    ("NVML is a real driver's: this takes a GPU", is_soft),
    ("the soft device has no bus: this takes a GPU", is_soft),
    ("cuBLAS needs a GPU", is_soft),
    ("four GPUs are needed", is_soft),
    ("the kernel takes no memory policy here", lambda: True),
)


def may_skip(reason: str) -> bool:
    return any(reason.startswith(begin) and holds() for begin, holds in CONDITIONS)
