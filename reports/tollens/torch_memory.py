"""Tollens as PyTorch's allocator of device memory.

    from tollens import torch_memory
    torch_memory.use()                    # before the first tensor on a device

    pool = torch.cuda.MemPool(torch_memory.allocator().allocator())    # for a part of a program
    with torch.cuda.use_mem_pool(pool): ...

    torch_memory.statistics()["reserved_peak"]

PyTorch has no statistics of an allocator that is plugged in, so use() replaces the functions that
torch.cuda.memory_stats(), max_memory_allocated(), memory_summary() and the others ask. What Tollens
does not count is 0 there; statistics() has more. The library is libtollens-torch.so of this
package, or $TOLLENS_TORCH_LIBRARY. runtime/ENVIRONMENT.md lists the environment variables.
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
    for module in (torch.cuda, torch.cuda.memory):
        module.memory_stats_as_nested_dict = _nested_statistics
        module.reset_peak_memory_stats = reset_peaks


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


def _ordinal(device: Any) -> int:
    """What PyTorch takes for a device: its number, its name, a torch.device, None."""
    if device is None or isinstance(device, int):
        return torch.cuda.current_device() if device is None else device
    index = torch.device(device).index
    return torch.cuda.current_device() if index is None else index


def reset_peaks(device: Any = None) -> None:
    """As torch.cuda.reset_peak_memory_stats()."""
    _open().tol_torch_reset_peaks(_ordinal(device))


def _nested_statistics(device: Any = None) -> dict[str, Any]:
    """As torch.cuda.memory_stats_as_nested_dict(). A pool here has no small and no large part."""
    found = statistics(_ordinal(device)) if torch.cuda.is_initialized() else {}
    if not found:
        return {}

    def stat(current: int = 0, peak: int = 0, allocated: int = 0,
             freed: int = 0) -> dict[str, dict[str, int]]:
        none = dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
        return {"all": {"current": current, "peak": peak, "allocated": allocated, "freed": freed},
                "small_pool": none, "large_pool": none}

    live = stat(found["allocated"], found["allocated_peak"])
    blocks = stat(found["blocks"], 0, found["allocations"], found["frees"])
    return {"allocated_bytes": live, "requested_bytes": live, "active_bytes": live,
            "reserved_bytes": stat(found["reserved"], found["reserved_peak"]),
            "allocation": blocks, "active": blocks, "inactive_split": stat(),
            "segment": stat(found["driver_allocations"] - found["driver_frees"], 0,
                            found["driver_allocations"], found["driver_frees"]),
            "inactive_split_bytes": stat(), "oversize_allocations": stat()["all"],
            "oversize_segments": stat()["all"], "max_split_size": -1, "num_alloc_retries": 0,
            "num_ooms": found["refused"], "num_sync_all_streams": 0,
            "num_device_alloc": found["driver_allocations"],
            "num_device_free": found["driver_frees"]}


def last_error() -> str:
    """Why the calling thread's latest call failed; "" if none has."""
    return _open().tol_torch_last_error().decode()
