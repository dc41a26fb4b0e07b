"""Tests of figures and tables, from the top folder:

    python3 -m unittest reports.drawing.drawn_test
"""

import math
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree

from reports import errors, evidence, hdr, made_evidence, tables, words
from reports.drawing import drawn, effect_axis, figure, memory_figures, svg
from reports.drawing.figure import Axis, Figure, Line


class Drawn(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        made_evidence.make(folder)
        self.claim = evidence.read(folder).claims[0]

    def test_each_table_becomes_its_figure(self) -> None:
        kinds = {f.name.split("_")[1]: f for f in drawn.of_claim(self.claim).all()}
        self.assertEqual(set(kinds), {"measures", "blocks", "ratio", "walk", "map", "timeline",
                                      "errors", "percentiles", "places"})
        self.assertIn("median 2 violations; control median 0, threshold 2", kinds["blocks"].alt)
        self.assertIn("worst ratio 2.048", kinds["ratio"].alt)
        self.assertIn("10 results, 30.00% exact, the largest error at most 2e-06",
                      kinds["errors"].alt)
        self.assertIn("2 operations on 2 lanes in 115 ns", kinds["timeline"].alt)
        self.assertIn("2 blocks in 2 MiB of addresses; held / requested is the worst at step 20",
                      kinds["places"].alt)
        self.assertIn("2 ranges, 94.1% of 1 MiB live", kinds["map"].alt)

    def test_blocks_of_each_version_are_read(self) -> None:
        calls = ["mixed", "50", "1", "2", "3", "4", "5", "6", "7", "8", "1.5", "0.25"]
        for columns, more in ((tables.BLOCKS, []), (tables.WAITED, ["0"] * 4),
                              (tables.DISCARDED, ["0"] * 4 + ["1", "2", "3"])):
            with tempfile.TemporaryDirectory() as name:
                path = pathlib.Path(name) / "attack.launch.csv"
                path.write_text(f"{','.join(columns)}\n{','.join(['1', *calls, *more])}\n")
                [blocks] = tables.read("H4", "attack", 1, pathlib.Path(name)).blocks
                self.assertEqual((blocks.effects, blocks.controls), ([1.5], [0.25]))
                path.write_text(f"{','.join(columns)}\n{','.join(['1', *calls, *more, '4'])}\n")
                with self.assertRaises(ValueError):
                    tables.read("H4", "attack", 1, pathlib.Path(name))

    def test_one_of_a_thing_is_in_the_singular(self) -> None:
        for value, unit, said in ((1, "violations", "violation"), (0, "violations", "violations"),
                                  (1, "driver allocations", "driver allocation"),
                                  (1.00001, "violations", "violation"), (1, "us", "us"),
                                  (1, "launches", "launch"), (1, "passes", "pass"),
                                  (1, "GB/s", "GB/s"), (1, "loss", "loss"), (1, "ratio", "ratio")):
            self.assertEqual(words.unit_of(value, unit), said)
        self.assertEqual(words.counted(1, "attacks"), "1 attack")
        self.assertEqual(words.counted(0, "attacks"), "0 attacks")

    def test_neighbours_of_one_kind_are_one_box_of_a_map(self) -> None:
        [table] = self.claim.tables.maps
        table.rows = [[str(at * 10), "10", "live"] for at in range(5)] + [["50", "190", "free"]]
        figure = memory_figures.map_figure(self.claim, table)
        self.assertEqual(len([box for box in figure.boxes if box.colour == 0]), 5)  # 10 B a lane
        self.assertEqual(sum(box.x1 - box.x0 for box in figure.boxes), 240 / 2**20)

    def test_addresses_over_time_are_darker_where_more_is_live(self) -> None:
        [table] = self.claim.tables.places
        mib = 1 << 20
        table.rows = [["0", "120", "0", str(24 * mib)], ["60", "120", str(99 * mib), str(24 * mib)]]
        chosen = memory_figures.places_figure(self.claim, table)
        shades = {(box.x0, box.lane): box.shade for box in chosen.boxes}
        self.assertEqual((shades[0.0, 0], shades[60.0, 24], (0.0, 24) in shades), (1.0, 1.0, False))
        self.assertEqual(max(box.lane for box in chosen.boxes), 47)  # 48 lanes, and no gap
        table.rows = [["0", "120", "0", str(mib)], ["0", "60", str(mib), str(95 * mib)]]
        shades = {(box.x0, box.lane): box.shade for box in
                  memory_figures.places_figure(self.claim, table).boxes}
        self.assertEqual((shades[0.0, 0], shades[61.0, 0], (61.0, 1) in shades), (1.0, 0.5, False))
        self.assertEqual([rule.value for rule in chosen.rules], [20.0])

    def test_the_three_tables_of_errors_are_one_kind(self) -> None:
        groups: dict[str, dict[float, int]] = {}
        errors.read(errors.OCTAVES, ["f32", "0.5", "1", "7"], groups)
        errors.read(errors.OCTAVES, ["f32", "1", "inf", "2"], groups)
        names = (*errors.RUNS, "below_1e-12", "more", "not_finite")
        run = ["q4_k", "f32", "9", "naive", "1", "12", "5", "5", "4", "2", "1"]
        for _ in range(2):
            errors.read(names, run, groups)
        self.assertEqual(groups, {"f32": {1.0: 7, math.inf: 2},
                                  "q4_k to f32": {0.0: 10, 1e-12: 8, math.inf: 6}})
        for bad in (["f32", "0.5", "nan", "7"], ["f32", "0.5", "1", "-1"], ["f32", "0.5", "1"]):
            with self.assertRaises(ValueError):
                errors.read(errors.OCTAVES, bad, groups)

    def test_shares_of_the_allowed_error_do_not_say_how_many_results_are_exact(self) -> None:
        table = errors.Errors("attack", "octaves", True, {"f32": {0.25: 7, 0.5: 0}})
        [one] = memory_figures.error_figures(self.claim, table)
        self.assertIn("f32: 7 results, the largest error at most 0.25 of the allowed.", one.alt)

    def test_every_figure_is_xml_with_its_text_and_finite_numbers(self) -> None:
        for one in drawn.of_claim(self.claim).all():
            text = svg.draw(one)
            element = xml.etree.ElementTree.fromstring(text)
            self.assertEqual(element.attrib["aria-label"], one.alt)
            self.assertTrue(one.alt, one.name)
            self.assertNotRegex(re.sub(r"<t.*?</t\w+>|aria-label=.*?>", "", text), "nan|inf")
            for place in re.findall(r"[MHVL](-?[\d.]+)", text):
                self.assertTrue(-1 <= float(place) <= 461, place)

    def test_many_measures_share_figures_evenly_and_keep_what_tells_them_apart(self) -> None:
        names = [f"fp32, elements from -1 to 1 by the root of k, k = {k}" for k in range(15)]
        self.claim.measures = [{"name": name, "attack": "a", "value": 0.5, "recorded_only": False}
                               for name in names]
        found = drawn.of_claim(self.claim).measures
        self.assertEqual([len(one.y.ticks) for one in found], [7, 8])
        self.assertEqual([one.title[-8:] for one in found], ["(1 of 2)", "(2 of 2)"])
        labels = [text for one in found for _, text in one.y.ticks]
        self.assertEqual([text.split("k = ")[1] for text in labels], list(map(str, range(15))))
        self.assertLessEqual(max(map(len, labels)), 34)

    def test_what_is_only_recorded_stands_apart(self) -> None:
        self.claim.effects[0]["recorded_only"] = True
        for measure in self.claim.measures:
            measure["recorded_only"] = True
        beside = {f.name.split("_")[1] for f in drawn.of_claim(self.claim).beside}
        self.assertEqual(beside, {"blocks", "ratio", "walk"})

    def test_a_walk_has_its_ratios(self) -> None:
        [walk] = self.claim.tables.walks
        self.assertEqual((walk.name, walk.ratios(0)), ("seed0", [2.048, 1.024]))
        self.assertNotEqual(walk.ratios(0.5)[0], walk.ratios(0.5)[0])  # NaN: nearly nothing live

    def test_few_calls_are_no_curve(self) -> None:
        for series in self.claim.series:
            series.histogram.buckets = [(5, 3)]
        self.assertEqual(drawn.of_claim(self.claim).series, [])

    def test_histograms_merge_as_if_one_had_counted(self) -> None:
        one = hdr.Histogram(1, 100, 3, [(2, 5), (4, 1)])
        both = one.merged(hdr.Histogram(1, 200, 3, [(3, 1), (4, 2)]))
        self.assertEqual((both.buckets, both.total, both.highest),
                         ([(2, 5), (3, 1), (4, 3)], 9, 200))
        with self.assertRaisesRegex(ValueError, "same buckets"):
            one.merged(hdr.Histogram(1, 100, 2, []))


class Axes(unittest.TestCase):
    def test_ticks_are_round_and_inside(self) -> None:
        for low, high in ((0.0, 1.0), (-3.7, 12.0), (0.97, 1.06), (5e9, 6e9), (0.0, 1e-9)):
            marks = figure.ticks(Axis(), low, high)
            self.assertTrue(2 <= len(marks) <= 13, (low, high, marks))
            self.assertTrue(all(low - 1e-12 <= value <= high + 1e-12 for value, _ in marks))
        for low, high in ((1e-9, 1.0), (3.0, 40.0), (0.5, 1e7)):
            self.assertTrue(figure.ticks(Axis(log=True), low, high), (low, high))

    def test_one_point_and_equal_points_have_an_axis(self) -> None:
        for x, y in (([1.0], [0.0]), ([2.0, 2.0], [7.0, 7.0])):
            for log in (False, True):
                text = svg.draw(Figure("n", "t", "a", Axis(), Axis(log=log), [Line("", x, y)]))
                self.assertNotIn("nan", text)

    def test_an_effect_lies_where_it_should(self) -> None:
        def at(**changed: object) -> tuple[float, float, float, float]:
            text = effect_axis.draw(made_evidence.result(**changed))  # type: ignore[arg-type]
            found = re.search(r'class="past" x="([\d.]+)" y="3" width="([\d.]+)".*'
                              r'class="edge" d="M([\d.]+) .*cx="([\d.]+)"', text)
            assert found is not None, text
            past, wide, edge, dot = map(float, found.groups())
            return past, wide, edge, dot

        past, _, edge, dot = at(effect=1.01, low=1.0, high=1.02, threshold=1.05, unit="ratio")
        self.assertTrue(dot < edge == past)
        past, _, edge, dot = at(effect=1.2, low=1.1, high=1.3, threshold=1.05, unit="ratio")
        self.assertTrue(dot > edge)
        past, wide, edge, dot = at(effect=3.0, threshold=1.5, unit="speedup", direction="above")
        self.assertTrue(past == 0 and wide == edge < dot)
        past, _, edge, dot = at(effect=1e-6, threshold=1e-3, unit="absolute error")
        self.assertTrue(20 < dot < edge, "far from it, a logarithm keeps both in sight")
        self.assertEqual(effect_axis.draw(made_evidence.result(effect=None)), "")


if __name__ == "__main__":
    unittest.main()
