"""Whether what fixtures/mutants says of equivalent mutants is still about the sources."""

from mutation.results import Survivors
from mutation.run import Run
from mutation.workshop import say


def check(run: Run) -> int:
    """Whether each argued entry is still a mutant of the sources."""
    survivors = Survivors(run.out)
    wrong = 0
    keys: dict[str, set[str]] = {}
    for key, entry in survivors.entries.items():
        file = entry["file"]
        if file not in keys:
            there = file in run.tree.sources and (run.tree.root / file).exists()
            keys[file] = {mutant.key for mutant in run.mutants([file])} if there else set()
        if survivors.argument(key) and key not in keys[file]:
            wrong += 1
            say(f"{survivors.path}: {file}:{entry['line']}: what is argued to be equivalent is "
                f"not there any more: {entry['before']}")
    if not wrong:
        argued = sum(1 for key in survivors.entries if survivors.argument(key))
        say(f"mutate: {argued} arguments, all about lines that are there")
    return 1 if wrong else 0
