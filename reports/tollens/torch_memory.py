"""Tollens as PyTorch's allocator of device memory.

    from tollens import torch_memory
    torch_memory.use()                    # before the first tensor on a device

    pool = torch.cuda.MemPool(torch_memory.allocator().allocator())    # for a part of a program
    with torch.cuda.use_mem_pool(pool): ...

    torch_memory.statistics()["reserved_peak"]

torch.cuda.memory_allocated() and its kin do not work with any allocator that is plugged in;
statistics() has the same numbers. The library is libtollens-torch.so of this package, or
$TOLLENS_TORCH_LIBRARY. runtime/ENVIRONMENT.md lists the environment variables.
"""

import ctypes
import json
import os
import pathlib
from typing import Any

import torch

NAME = "libtollens-torch.so"
_HERE = pathlib.Path(__file__).resolve().parent
# As installed; as Debian has it, where the loader looks; as built in a clone.
_PLACES = (_HERE / "program" / NAME, _HERE.parent.parent / "build" / NAME)


def library_path() -> str:
    """Where the library is. OSError: nowhere."""
    named = os.environ.get("TOLLENS_TORCH_LIBRARY")
    if named:
        return named
    for place in _PLACES:
        if place.exists():
            return str(place)
    return NAME


_library: ctypes.CDLL | None = None


def _open() -> ctypes.CDLL:
    global _library
    if _library is None:
        _library = ctypes.CDLL(library_path())
        _library.tol_torch_statistics.restype = ctypes.c_size_t
        _library.tol_torch_statistics.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        _library.tol_torch_last_error.restype = ctypes.c_char_p
    return _library


def _address(name: str) -> int:
    return ctypes.cast(getattr(_open(), name), ctypes.c_void_p).value or 0


def allocator() -> Any:
    """For torch.cuda.MemPool(allocator().allocator()): returns no memory where there is none, and
    PyTorch then frees what it caches and tries again."""
    return torch.cuda.memory.CUDAPluggableAllocator(
        library_path(), "tol_torch_allocate", "tol_torch_free")


def use() -> None:
    """Makes Tollens the allocator of this process, for all devices. RuntimeError: PyTorch has
    allocated device memory already."""
    plugged = torch.cuda.memory.CUDAPluggableAllocator(
        library_path(), "tol_torch_allocate_or_throw", "tol_torch_free")
    own = plugged.allocator()
    for setter, name in (
            ("set_init_fn", "tol_torch_init"),
            ("set_reset_fn", "tol_torch_empty_cache"),
            ("set_memory_fraction_fn", "tol_torch_set_fraction"),
            ("set_base_alloc_fn", "tol_torch_base"),
            ("set_record_stream_fn", "tol_torch_record_stream"),
            ("set_begin_allocate_to_pool", "tol_torch_begin_pool"),
            ("set_end_allocate_to_pool_fn", "tol_torch_end_pool"),
            ("set_release_pool", "tol_torch_release_pool")):
        if hasattr(own, setter):  # PyTorch 2.0 has none of them
            getattr(own, setter)(_address(name))
    torch.cuda.memory.change_current_allocator(plugged)


def all_statistics() -> list[dict[str, int]]:
    """One for each device that has been used."""
    library = _open()
    text = ctypes.create_string_buffer(library.tol_torch_statistics(None, 0) + 1024)
    library.tol_torch_statistics(text, len(text))
    return json.loads(text.value)["devices"]


def statistics(device: int = 0) -> dict[str, int]:
    """In bytes: allocated, reserved, and the peak of each; counts of blocks, allocations, driver
    calls; runtime/driver/torch/README.md has all. Empty: the device has not been used."""
    return next((each for each in all_statistics() if each["device"] == device), {})


def last_error() -> str:
    """Why the calling thread's latest call failed; "" if none has."""
    return _open().tol_torch_last_error().decode()
