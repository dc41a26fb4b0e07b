#!/usr/bin/env python3
"""What the loads of the bench allocate, recorded without a device, and replayed with an allocator.

    torch_trace.py record LOAD FILE [--steps N] [--seed N]
    torch_trace.py replay ALLOCATOR FILE      native, expandable, tollens, tollens:1.01

The recording takes shapes from PyTorch's meta device, so temporaries inside of a kernel are not in
it. The replay allocates and frees, and starts no kernel: it runs on the soft device too, and holds
as much there as on a GPU without queued work:

    build/tollens soft --memory 100G -- \
        python3 runtime/driver/torch/torch_trace.py replay tollens FILE
"""

import argparse
import json
import pathlib
import sys
import weakref
from typing import Any

import torch_trial

FREED, STEP = 0, -1  # in the place of the bytes


def record(load: str, steps: int, seed: int) -> list[tuple[int, int]]:
    """Pairs of a block's number and its bytes, FREED or STEP."""
    import torch
    from torch.utils import _pytree as tree
    from torch.utils._python_dispatch import TorchDispatchMode

    import torch_loads
    events: list[tuple[int, int]] = []
    live: dict[int, int] = {}

    def freed(key: int, number: int) -> None:
        if live.get(key) == number:
            del live[key]
        events.append((number, FREED))

    def note(value: Any) -> None:
        if not isinstance(value, torch.Tensor) or value.device.type != "meta":
            return
        storage = value.untyped_storage()
        key = storage._cdata
        if key in live or storage.nbytes() == 0:
            return
        live[key] = len(events)
        events.append((live[key], storage.nbytes()))
        weakref.finalize(storage, freed, key, live[key])

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                               kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            tree.tree_map(note, result)
            return result

    with Recorder():
        step = torch_loads.LOADS[load]("meta", 1.0, seed)
        for _ in range(steps):
            step()
            events.append((0, STEP))
    return list(events)


def replay(allocator: str, events: list[tuple[int, int]]) -> dict[str, Any]:
    torch_trial.configure(allocator, 0)
    import torch
    memory = torch_trial.Memory(allocator, 0)
    blocks: dict[int, torch.Tensor] = {}
    calls = []
    for number, size in events:
        if size == STEP:
            calls.append(memory.numbers()["driver_calls"])
        elif size == FREED:
            blocks.pop(number, None)
        else:
            blocks[number] = torch.empty(size, dtype=torch.uint8, device="cuda")
    steps = [after - before for before, after in zip(calls, calls[1:])]
    return {"allocator": allocator, **memory.numbers(), "driver_calls_of_steps": steps}


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=("record", "replay"))
    parser.add_argument("name")
    parser.add_argument("file")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    path = pathlib.Path(given.file)
    if given.what == "record":
        path.write_text(json.dumps(record(given.name, given.steps, given.seed)))
    else:
        print(json.dumps(replay(given.name, json.loads(path.read_text()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
