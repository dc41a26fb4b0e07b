"""Walks over a pool: the bytes it held and the bytes in use, step by step."""

from dataclasses import dataclass

COLUMNS = ["step", "requested", "used", "held", "largest_hole"]
FLOOR = 0.05  # of the peak of live bytes; a ratio to fewer bytes says nothing


@dataclass
class Walk:
    claim: str
    attack: str
    name: str
    rows: list[dict[str, int]]

    def ratios(self, floor: float) -> list[float]:
        """Held / requested at each step; NaN if less than this share of the peak is live."""
        most = max((row["requested"] for row in self.rows), default=0)
        return [row["held"] / row["requested"] if row["requested"] > floor * most else float("nan")
                for row in self.rows]

    def worst_step(self, floor: float) -> int | None:
        """Where the ratio is the worst; None: nowhere is enough live."""
        known = [(ratio, row["step"]) for ratio, row in zip(self.ratios(floor), self.rows)
                 if ratio == ratio]
        return max(known)[1] if known else None

    def worst(self) -> float:
        return max((ratio for ratio in self.ratios(FLOOR) if ratio == ratio), default=0.0)
