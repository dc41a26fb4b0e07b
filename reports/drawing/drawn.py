"""All figures of a claim, each drawn once for every form of the report."""

from dataclasses import dataclass, field

from . import figures, heat_maps, memory_figures
from ..evidence import Claim
from .figure import Figure


@dataclass
class Drawn:
    """Figures of one claim by kind. Those in beside show values that are only recorded."""

    measures: list[Figure] = field(default_factory=list)
    blocks: list[Figure] = field(default_factory=list)
    tables: list[Figure] = field(default_factory=list)
    series: list[Figure] = field(default_factory=list)
    beside: list[Figure] = field(default_factory=list)

    def all(self) -> list[Figure]:
        return [*self.measures, *self.blocks, *self.tables, *self.series, *self.beside]


def of_claim(claim: Claim) -> Drawn:
    blocks = figures.of_blocks(claim)
    walks, more_walks = memory_figures.of_walks(claim)
    drawn = Drawn(figures.of_measures(claim), [figure for judged, figure in blocks if judged],
                  [*walks, *memory_figures.of_tables(claim), *heat_maps.of_pairs(claim)],
                  figures.of_series(claim),
                  [*(figure for judged, figure in blocks if not judged), *more_walks])
    for name in ("measures", "blocks", "tables", "series", "beside"):
        setattr(drawn, name, [f for f in getattr(drawn, name) if not f.is_empty()])
    return drawn
