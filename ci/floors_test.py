#!/usr/bin/env python3
"""What ci/floors.py must find in the tree's own texts once something wrong is added to them."""

import sys
import unittest

import floors
from rooms import ROOMS, Room

TREE = floors.read_tree()
BY_ROOT = {room.root: room for room in ROOMS}
DRIVER, SOFT = BY_ROOT["runtime/driver"], BY_ROOT["runtime/soft"]
# With folders of which one may not include another, and with sources.
STOREYED = [room for room in ROOMS if (len(room.floors) > 1 or room.above)
            and room.root != "runtime/include"]


def at(room: Room, folder: str, name: str) -> str:
    return f"{room.root}/{name}" if folder == "." else f"{room.root}/{folder}/{name}"


def ground(room: Room) -> str:
    return next(folders for folders, _ in room.floors if "include" not in folders).split()[0]


def top(room: Room) -> str:
    """A folder that the ground floor may not include: of the last floor, or of programs."""
    return room.floors[-1][0].split()[-1] if len(room.floors) > 1 else room.above[0]


def plan(room: Room, planted: dict[str, str]) -> floors.Plan:
    return floors.Plan(room, {**TREE, **planted})


class Tree(unittest.TestCase):
    def test_the_tree_is_clean(self) -> None:
        for room in ROOMS:
            with self.subTest(room=room.root):
                self.assertGreater(len(floors.Plan(room, TREE).texts), 4)
                self.assertEqual(list(floors.Plan(room, TREE).findings()), [])

    def test_what_is_found_in_a_room_is_among_all_findings(self) -> None:
        low = at(SOFT, "base", "planted.c")
        texts = {**TREE, low: '#include "planted_nowhere.h"\n'}
        found = floors.check(texts, {room.readme: f"{floors.BEGIN}{floors.END}" for room in ROOMS})
        self.assertEqual(sum(line.startswith(low + ":1:") for line in found), 1, found)


class Climbs(unittest.TestCase):
    def test_an_include_of_a_higher_floor_is_found(self) -> None:
        for room in STOREYED:
            with self.subTest(room=room.root):
                high = at(room, top(room), "planted_high.h")
                low = at(room, ground(room), "planted_low.c")
                name = "../" * low.count("/") + high
                found = list(plan(room, {high: "", low: f'\n#include "{name}"\n'}).climbs())
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(f"{low}:2: "), found)
                self.assertIn(high, found[0])

    def test_an_include_of_a_lower_floor_is_right(self) -> None:
        for room in STOREYED:
            with self.subTest(room=room.root):
                low = at(room, ground(room), "planted_low.h")
                high = at(room, top(room), "planted_high.c")
                name = "../" * high.count("/") + low
                found = plan(room, {low: "", high: f'#include "{name}"\n'}).climbs()
                self.assertEqual(list(found), [])

    def test_folders_of_one_floor_do_not_include_each_other(self) -> None:
        header, source = "runtime/driver/pool/planted.h", "runtime/driver/graph/planted.c"
        found = list(plan(DRIVER, {header: "", source: '#include "pool/planted.h"\n'}).climbs())
        self.assertEqual(len(found), 1, found)
        self.assertIn("graph/planted.c is on floor 4", found[0])

    def test_a_folder_without_a_floor_is_found(self) -> None:
        source = "runtime/driver/attic/planted.c"
        found = list(plan(DRIVER, {source: '#include "core/check.h"\n'}).climbs())
        self.assertEqual(len(found), 1, found)
        self.assertIn("attic", found[0])

    def test_a_forbidden_include_of_another_room_is_found(self) -> None:
        for root, other in (("runtime/driver", "runtime/soft/base/arena.h"),
                            ("runtime/driver", "kernels/choose/kernel_set.h"),
                            ("runtime/soft", "runtime/driver/core/check.h"),
                            ("hypotheses/harness", "runtime/driver/core/check.h"),
                            ("hypotheses/harness", "kernels/choose/kernel_set.h"),
                            ("hypotheses/harness", "runtime/models/engine/model.h"),
                            ("kernels", "hypotheses/harness/include/harness/claim.h"),
                            ("runtime/soft/cudart", "runtime/soft/base/arena.h"),
                            ("runtime/models", "runtime/soft/base/arena.h"),
                            ("hypotheses", "runtime/include/tollens/pool.h")):
            room = BY_ROOT[root]
            with self.subTest(room=room.root):
                self.assertIn(other, TREE)
                source = at(room, ground(room), "planted.c")
                way = "../" * source.count("/") + other
                found = list(plan(room, {source: f'#include "{way}"\n'}).climbs())
                self.assertEqual(found, [f"{source}:1: {room.root} may not include {other}"])


class Circles(unittest.TestCase):
    def test_two_files_that_include_each_other_are_found(self) -> None:
        for room in ROOMS:
            with self.subTest(room=room.root):
                one, two = (at(room, ground(room), f"planted_{name}.h") for name in ("one", "two"))
                found = list(plan(room, {one: '#include "planted_two.h"\n',
                                         two: '#include "planted_one.h"\n'}).circles())
                self.assertEqual(found, [f"{room.root}: these include each other: "
                                         "planted_one, planted_two"])

    def test_a_circle_through_other_files_is_found(self) -> None:
        names = ("a", "b", "c", "d")
        texts = {at(SOFT, "base", f"planted_{name}.h"): f'#include "planted_{after}.h"\n'
                 for name, after in zip(names, names[1:] + names[:1])}
        found = list(plan(SOFT, texts).circles())
        self.assertEqual(len(found), 1, found)
        self.assertIn("planted_a, planted_b, planted_c, planted_d", found[0])

    def test_a_source_and_its_header_are_one(self) -> None:
        texts = {"runtime/soft/base/planted.c": '#include "planted.h"\n#include "planted_2.h"\n',
                 "runtime/soft/base/planted.h": "",
                 "runtime/soft/base/planted_2.h": '#include "planted.h"\n'}
        self.assertEqual(len(list(plan(SOFT, texts).circles())), 1)
        texts["runtime/soft/base/planted.c"] = '#include "planted.h"\n'
        self.assertEqual(list(plan(SOFT, texts).circles()), [])


class Tags(unittest.TestCase):
    def test_a_tag_of_two_structs_is_found(self) -> None:
        for room in ROOMS:
            with self.subTest(room=room.root):
                one, two = (at(room, ground(room), f"planted_{name}.c") for name in ("1", "2"))
                texts = {one: "struct planted {\n};\n", two: "typedef union planted {\n} u;\n"}
                found = list(plan(room, texts).shared_tags())
                self.assertEqual(found, [f"{two}: {one} has a struct planted already"])


class Tables(unittest.TestCase):
    def readmes(self) -> dict[str, str]:
        frame = f"# A room\n\n{floors.BEGIN}\nold\n{floors.END}\n\nMore.\n"
        return {room.readme: floors.with_table(room, frame) for room in ROOMS if room.readme}

    def test_tables_as_they_must_be_are_right(self) -> None:
        self.assertEqual(list(floors.stale_tables(self.readmes())), [])

    def test_a_stale_table_is_found(self) -> None:
        for room in ROOMS:
            if not room.readme:
                continue
            with self.subTest(room=room.root):
                readmes = self.readmes()
                self.assertIn(room.floors[0][1], readmes[room.readme])
                readmes[room.readme] = readmes[room.readme].replace(room.floors[0][1], "all else")
                stale = f"{room.readme}: its table of floors is stale: ci/floors.py --write"
                self.assertEqual(list(floors.stale_tables(readmes)), [stale])
                self.assertIn(stale, floors.check({}, readmes))

    def test_a_readme_without_a_place_for_its_table_is_found(self) -> None:
        found = list(floors.stale_tables({**self.readmes(), SOFT.readme: "# Soft\n"}))
        self.assertEqual(len(found), 1, found)
        self.assertIn(SOFT.readme, found[0])


if __name__ == "__main__":
    sys.exit(unittest.main())
