"""Walks over a pool: what it held and what was in use, step by step."""

import csv
import pathlib
from dataclasses import dataclass

COLUMNS = ["step", "requested", "used", "held", "largest_hole"]


@dataclass
class Walk:
    claim: str
    attack: str
    name: str
    rows: list[dict[str, int]]

    @property
    def file_name(self) -> str:
        return f"{self.claim}_{self.attack}_{self.name}.png"

    def ratios(self, floor: float) -> list[float]:
        """Held to requested, where at least a share of the most that was live is."""
        most = max((row["requested"] for row in self.rows), default=0)
        return [row["held"] / row["requested"] if row["requested"] > floor * most else float("nan")
                for row in self.rows]


def read_walks(claim: str, attack: str, folder: pathlib.Path) -> list[Walk]:
    """The walks of one attack. Other tables of the evidence are passed over."""
    walks = []
    for path in sorted(folder.glob(f"{attack}.*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.DictReader(file)
            if lines.fieldnames != COLUMNS:
                continue
            try:
                rows = [{key: int(value) for key, value in line.items()} for line in lines]
            except (TypeError, ValueError) as error:
                raise ValueError(f"{path} line {lines.line_num}: {error}") from error
        walks.append(Walk(claim, attack, path.name.removesuffix(".csv").split(".", 1)[1], rows))
    return walks
