"""Slow machines of a merged fleet are named, and no others: python3 -m unittest
reports.fleet.merge_outliers_test."""

import unittest
from typing import Any

from reports.fleet import made_fleet
from reports.fleet.merge_test import Fleets


def member_names(value: Any, path: str) -> set[str]:
    """As hypotheses/JSON.md has them."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {name for row in value for name in member_names(row, f"{path}[].")}
    if isinstance(value, dict):
        return {name for key, inner in value.items() if key not in ("schema", "command")
                for name in member_names(inner, path + key)}
    return {path}


class Outliers(Fleets):
    def test_of_200_machines_the_three_slow_ones_are_named_and_no_other(self) -> None:
        slow = ["gpu-017", "gpu-080", "gpu-133"]
        said = self.merged(*made_fleet.make_fleet(self.top, 200, slow))
        self.assertEqual([row["machine"] for row in said["outliers"]],
                         [f"{name} {made_fleet.uuid(name)}" for name in slow])
        for row in said["outliers"]:
            self.assertGreater(len(row["quantities"]), 5)
        html = (self.out / "merge.html").read_text()
        self.assertIn("<h1>200 runs of 200 machines: 3 survived; 3 machines out of line</h1>", html)
        self.assertIn(f"gpu-017 {made_fleet.uuid('gpu-017')}", html)
        manual = (made_fleet.ROOT / "hypotheses/JSON.md").read_text()
        manual = manual.partition("\n## merge\n")[2].partition("\n## ")[0]
        for name in member_names(said, ""):
            self.assertIn(f"`{name}", manual)
        self.assertIn("out of line: gpu-", html, "the figures name them for those who cannot see")

    def test_times_of_the_soft_device_are_no_numbers_of_a_machine(self) -> None:
        folders = [self.make(f"m{at}", kind="soft", slow=1 + 9 * (at == 3)) for at in range(10)]
        said = self.merged(*folders)
        self.assertEqual((said["outliers"], len(said["machines"])), ([], 10))
        self.assertEqual({row["unit"] for row in said["spreads"]}, {"us", "ratio"})


if __name__ == "__main__":
    unittest.main()
