"""Walks over a pool: what it held and what was in use, step by step."""

from dataclasses import dataclass

COLUMNS = ["step", "requested", "used", "held", "largest_hole"]
FLOOR = 0.05  # of the most that was live: a ratio to less says nothing


@dataclass
class Walk:
    claim: str
    attack: str
    name: str
    rows: list[dict[str, int]]

    def ratios(self, floor: float) -> list[float]:
        """Held to requested, where at least a share of the most that was live is."""
        most = max((row["requested"] for row in self.rows), default=0)
        return [row["held"] / row["requested"] if row["requested"] > floor * most else float("nan")
                for row in self.rows]

    def worst(self) -> float:
        return max((ratio for ratio in self.ratios(FLOOR) if ratio == ratio), default=0.0)
