"""Copies of the build in which mutants are tried beside each other, for ci/mutate --jobs.

A lane is a folder with links to the tree's sources, which no run changes, and a copy of the build
that is mutated. ninja and the tests run in it as they run in the tree.
"""

import dataclasses
import pathlib
import shutil

from mutation.workshop import Tree, Workshop

NOT_LINKED = {"build", "evidence"}


def _copy(tree: Tree, root: pathlib.Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    build = root / "build"
    build.mkdir(parents=True)
    for entry in tree.root.iterdir():
        if entry.name not in NOT_LINKED:
            (root / entry.name).symlink_to(entry)
    folder = tree.root / tree.folder
    for entry in folder.parent.iterdir():
        # What ninja knows of times and dependencies is written by each run of it.
        if entry.name.startswith(".ninja"):
            shutil.copy2(entry, build / entry.name)
        elif entry != folder:
            (build / entry.name).symlink_to(entry)
    # ninja takes its logs from the folder where it runs, if the file names no other.
    for name in (".ninja_log", ".ninja_deps"):
        if (root / name).is_symlink():
            (root / name).unlink()
            shutil.copy2(tree.root / name, root / name)
    shutil.copytree(folder, root / tree.folder, symlinks=True,
                    ignore=lambda at, _: ["mutant"] if pathlib.Path(at) == folder else [])


def open_lanes(tree: Tree, first: Workshop, jobs: int) -> list[Workshop]:
    """The tree's own workshop and jobs - 1 in copies of its build."""
    lanes = [first]
    for number in range(1, jobs):
        root = tree.root / tree.folder / "mutant" / f"lane{number}"
        _copy(tree, root)
        lane = Workshop(dataclasses.replace(tree, root=root))
        lane.commands = first.commands
        lanes.append(lane)
    return lanes
