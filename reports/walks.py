"""Walks over a pool: what it held and what was in use, step by step, and a picture of each."""

import csv
import pathlib
from dataclasses import dataclass

COLUMNS = ["step", "requested", "used", "held", "largest_hole"]
GIB = float(1 << 30)


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


def draw(walk: Walk, path: pathlib.Path) -> None:
    from reports.plots import pyplot  # here, since reading needs no matplotlib

    steps = [row["step"] for row in walk.rows]
    figure, axes = pyplot.subplots(figsize=(6, 3.2), dpi=130)
    axes.plot(steps, [row["held"] / GIB for row in walk.rows], color="#bc4c00", linewidth=1.2,
              label="held")
    axes.plot(steps, [row["requested"] / GIB for row in walk.rows], color="#1f6feb", linewidth=1.2,
              label="requested")
    axes.set_xlabel("step")
    axes.set_ylabel("GiB")
    axes.set_ylim(bottom=0)
    axes.legend(loc="center right", fontsize=8)
    beside = axes.twinx()
    beside.plot(steps, walk.ratios(0.05), color="#57606a", linewidth=0.7)
    beside.set_ylabel("held to requested")
    axes.set_title(f"{walk.claim} {walk.attack.replace('_', ' ')}: {walk.name.replace('_', ' ')}",
                   fontsize=9)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    pyplot.close(figure)
