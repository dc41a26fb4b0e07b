"""The rule names what is out of line, and seldom anything else: python3 -m unittest
reports.fleet.outliers_test."""

import math
import random
import unittest

from reports.fleet import healthy, outliers


def values(count: int, spread: float, seed: int = 1, middle: float = 1000.0) -> dict[str, float]:
    draw = random.Random(seed)
    return {f"gpu{at}": middle * math.exp(draw.gauss(0, spread)) for at in range(count)}


def named(some: dict[str, float], quantities: int = 24, worth: float | None = None) -> list[str]:
    return sorted(one.machine for one in outliers.find(some, quantities, worth)[1])


class Limits(unittest.TestCase):
    def test_the_tail_is_students(self) -> None:
        # The table of Student's t with 7 degrees of freedom: two-sided 50 %, 5 %, 1 %, 0.1 %.
        for distance, share in ((0.7111, 0.5), (2.3646, 0.05), (3.4995, 0.01), (5.4079, 0.001)):
            self.assertAlmostEqual(outliers.tail(distance), share, delta=share / 1000)

    def test_more_chances_of_a_false_alarm_ask_for_more(self) -> None:
        self.assertEqual(outliers.limit(7, 1), math.inf)
        self.assertEqual(outliers.limit(8, 1), 22.0)
        self.assertEqual(outliers.limit(16, 1), 16.0)
        limits = [outliers.limit(1000, count) for count in (50, 100, 1000)]
        self.assertEqual(limits, sorted(set(limits)))
        share = outliers.tail(limits[0] * outliers.STUDENT_MAD / outliers.NORMAL_MAD)
        self.assertAlmostEqual(share * 1000 * 50, outliers.ALARMS, delta=outliers.ALARMS / 100)


class Alarms(unittest.TestCase):
    def test_of_1000_healthy_fleets_at_most_one_in_100_is_alarmed(self) -> None:
        # Small fleets, so that this takes seconds; healthy.py has the large ones, too.
        for noise in ("normal", "skewed"):
            self.assertLessEqual(healthy.alarms(8, noise, 0.05, 1000),
                                 1000 * outliers.ALARMS, noise)

    def test_a_rule_without_its_limit_would_be_noticed(self) -> None:
        before, outliers.FLOORS = outliers.FLOORS, ((0, 0.0),)
        outliers.limit.cache_clear()
        try:
            self.assertGreater(healthy.alarms(8, "skewed", 0.05, 200), 10)
        finally:
            outliers.FLOORS = before
            outliers.limit.cache_clear()


class Named(unittest.TestCase):
    def test_a_slow_machine_is_named_in_fleets_of_every_size(self) -> None:
        for count in (8, 16, 200):
            some = values(count, 0.005)
            some["gpu3"] *= 1.3
            self.assertEqual(named(some), ["gpu3"], count)
            some["gpu3"] /= 1.3 ** 2
            self.assertEqual(named(some), ["gpu3"], "a fast one is out of line, too")

    def test_several_do_not_hide_each_other(self) -> None:
        some = values(64, 0.005)
        slow = [f"gpu{at}" for at in range(10)]
        for machine in slow:
            some[machine] *= 1.5
        self.assertEqual(named(some), sorted(slow))

    def test_what_is_not_worth_a_look_is_not_named(self) -> None:
        some = values(64, 0.0001)
        some["gpu3"] *= 1.09
        self.assertEqual(named(some), [])
        some["gpu3"] *= 1.02
        self.assertEqual(named(some), ["gpu3"])

    def test_a_fleet_of_equal_numbers_names_the_one_that_differs(self) -> None:
        some = {f"gpu{at}": 0.000307 for at in range(20)}
        self.assertEqual(named(some), [])
        some["gpu7"] = 0.0009
        self.assertEqual(named(some), ["gpu7"])

    def test_effects_around_zero_are_compared_by_their_tolerance(self) -> None:
        draw = random.Random(3)
        some = {f"gpu{at}": draw.gauss(0.0, 0.01) for at in range(40)}
        some["gpu3"] = 0.4
        self.assertEqual(named(some, worth=0.5), [])
        self.assertEqual(named(some, worth=0.2), ["gpu3"])

    def test_few_machines_are_no_fleet(self) -> None:
        some = values(7, 0.001)
        some["gpu3"] *= 9
        spread, found = outliers.find(some, 1)
        self.assertEqual((found, spread.machines), ([], 7))
        self.assertEqual(spread.high, some["gpu3"])


if __name__ == "__main__":
    unittest.main()
