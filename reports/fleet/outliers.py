"""Which machines of a fleet are out of line, by a rule with a stated rate of false alarms.

A quantity has one number per machine, for example the median time of a launch. A machine is out of
line in a quantity if both are true:

* its distance from the fleet's median is more than `limit` robust standard deviations. By the
  limit at most one healthy fleet in 100 has any machine named, over all its machines and
  quantities together. It is that of Student's t with 7 degrees of freedom (Bonferroni) and at
  least 16, or 22 in fleets of fewer than 16 machines, which do not know their own spread well.
  Both floors are from simulations with normal, skewed and heavy-tailed numbers; healthy.py repeats
  them, and outliers_test.py holds the rule to its rate;
* the distance is also worth a look: 10 % of the median, or what the caller says.

Numbers that are all positive are compared as logarithms: of times and errors the ratio counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

MACHINES_MIN = 8     # fewer cannot show what is usual
ALARMS = 0.01        # of healthy fleets, at most this share has a machine named
WORTH = 0.10         # of the median
DEGREES = 7          # of Student's t
FLOORS = ((16, 22.0), (0, 16.0))  # the least limit below this number of machines; 0: for any number
NORMAL_MAD = 0.6745  # the median distance from the median of a standard normal number
STUDENT_MAD = 0.7111  # the same of Student's t with 7 degrees of freedom
NORMAL_80 = 0.8416   # the 80th percentile of a standard normal number


@dataclass
class Spread:
    """A quantity over machines. low and high: the smallest and the largest number."""

    machines: int
    low: float
    median: float
    high: float
    scale: float       # robust standard deviation, as a share of the median where relative
    relative: bool     # numbers are compared by their ratio
    limit: float       # in robust standard deviations; infinite: too few machines


@dataclass
class Outlier:
    machine: str
    value: float
    deviations: float  # from the median, in robust standard deviations; negative: below it


def tail(distance: float) -> float:
    """The share of Student's t with 7 degrees of freedom beyond +-distance. Source: Abramowitz and
    Stegun, 26.7.3."""
    angle = math.atan(distance / math.sqrt(DEGREES))
    cosine = math.cos(angle)
    total = cosine * (1 + cosine ** 2 * (2 / 3 + 8 / 15 * cosine ** 2))
    return 1.0 - 2.0 / math.pi * (angle + math.sin(angle) * total)


@lru_cache
def limit(machines: int, quantities: int) -> float:
    """In robust standard deviations; infinite for too few machines."""
    if machines < MACHINES_MIN:
        return math.inf
    share = ALARMS / (machines * max(1, quantities))
    low, high = 0.0, 1e4  # the share beyond 1e4 is 1e-24, more than any fleet asks for
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if tail(middle) > share else (low, middle)
    floor = next(floor for below, floor in FLOORS if machines < below or not below)
    return max(floor, high * NORMAL_MAD / STUDENT_MAD)


def percentile(ordered: Sequence[float], share: float) -> float:
    """With linear interpolation between neighbours."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def robust_scale(ordered: Sequence[float], median: float) -> float:
    """The larger of two estimates that a fifth of the machines cannot spoil. The second is for
    fleets most of whose numbers are equal."""
    distances = sorted(abs(value - median) for value in ordered)
    return max(percentile(distances, 0.5) / NORMAL_MAD,
               (percentile(ordered, 0.8) - percentile(ordered, 0.2)) / (2 * NORMAL_80))


def find(values: Mapping[str, float], quantities: int,
         worth: float | None = None) -> tuple[Spread, list[Outlier]]:
    """Looks at one quantity of several; values: by machine, at least one. worth: the smallest
    distance that matters, in the quantity's unit; None: 10 % of the median."""
    plain = sorted(values.values())
    relative = plain[0] > 0 and worth is None
    ordered = [math.log(value) for value in plain] if relative else plain
    median = percentile(ordered, 0.5)
    scale = robust_scale(ordered, median)
    spread = Spread(len(plain), plain[0], math.exp(median) if relative else median, plain[-1],
                    scale, relative, limit(len(plain), quantities))
    least = math.log1p(WORTH) if relative else WORTH * abs(median) if worth is None else worth
    found = []
    for machine, value in values.items():
        distance = (math.log(value) if relative else value) - median
        if abs(distance) > max(least, spread.limit * scale):
            found.append(Outlier(machine, value, distance / scale if scale else
                                 math.copysign(math.inf, distance)))
    return spread, sorted(found, key=lambda one: -abs(one.deviations))
