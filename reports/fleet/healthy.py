"""How often the rule of outliers.py names a machine of a healthy fleet: python3 -m
reports.fleet.healthy [FLEETS]

Simulates fleets without a bad machine and prints, for each size and each kind of noise, in how many
a machine was named. The numbers of a machine share a part, because a slightly slow GPU
is slow in everything. The seed is fixed, so every run prints the same.
"""

import math
import random
import sys
from collections.abc import Callable

from . import outliers

SIZES = (8, 16, 64, 200)
QUANTITIES = 24
FLEETS = 1000


def student(draw: random.Random, degrees: int) -> float:
    """Student's t, scaled to the variance 1."""
    chi = sum(draw.gauss(0, 1) ** 2 for _ in range(degrees))
    return draw.gauss(0, 1) / math.sqrt(chi / (degrees - 2))


# Each makes a number with the standard deviation 1, or nearly.
NOISES: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda draw: draw.gauss(0, 1),
    "skewed": lambda draw: draw.expovariate(1.0) - 1.0,
    "heavy tails (t, 5)": lambda draw: student(draw, 5),
    "very heavy tails (t, 3)": lambda draw: student(draw, 3),
    "two batches": lambda draw: draw.gauss(1.0 if draw.random() < 0.5 else -1.0, 0.4),
}
SPREADS = (0.01, 0.05)  # of a machine's number: 1 % and 5 %


def fleet(draw: random.Random, machines: int, noise: str,
          spread: float) -> list[dict[str, float]]:
    """Each quantity of a healthy fleet, by machine."""
    own = NOISES[noise]
    common = [own(draw) for _ in range(machines)]
    return [{str(at): 1000.0 * math.exp(spread * (0.7 * common[at] + 0.7 * own(draw)))
             for at in range(machines)} for _ in range(QUANTITIES)]


def named(quantities: list[dict[str, float]]) -> set[str]:
    """The machines that the rule names."""
    return {one.machine for values in quantities
            for one in outliers.find(values, len(quantities))[1]}


def alarms(machines: int, noise: str, spread: float, fleets: int, seed: int = 1) -> int:
    """The number of healthy fleets, of all that are drawn, in which a machine was named."""
    draw = random.Random(f"{seed} {machines} {noise} {spread}")
    return sum(bool(named(fleet(draw, machines, noise, spread))) for _ in range(fleets))


def main(words: list[str]) -> int:
    fleets = int(words[0]) if words else FLEETS
    print(f"fleets of {fleets} in which a machine was named; {QUANTITIES} quantities per "
          f"fleet; the rule promises at most {outliers.ALARMS:.0%}, except for very heavy tails")
    print(f"{'noise':<26}{'spread':>8}" + "".join(f"{f'{size} machines':>14}" for size in SIZES))
    for noise in NOISES:
        for spread in SPREADS:
            counts = [alarms(size, noise, spread, fleets) for size in SIZES]
            print(f"{noise:<26}{spread:>8.0%}" + "".join(f"{count:>14}" for count in counts),
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
