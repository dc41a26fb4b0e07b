"""Tests of heat maps, from the top folder:

    python3 -m unittest reports.drawing.heat_maps_test
"""

import pathlib
import tempfile
import unittest
import xml.etree.ElementTree
from typing import Any

from reports import evidence, made_evidence
from reports.drawing import drawn, heat_maps, svg


def measure(name: str, value: float | None, recorded_only: bool = True) -> dict[str, Any]:
    return {"name": name, "value": value, "recorded_only": recorded_only, "attack": "one_way",
            "record": "P2/attacks/one_way.json"}


class HeatMaps(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        made_evidence.make(folder)
        self.claim = evidence.read(folder).claims[0]
        self.before = {f.name for f in drawn.of_claim(self.claim).all()}
        self.claim.measures += [
            measure("one way (GB/s), runtime, device 0 to 1", 390.0),
            measure("one way (GB/s), runtime, device 0 to 1", 394.0),
            measure("one way (GB/s), runtime, device 1 to 0", 150.0),
            measure("one way (GB/s), driver, device 0 to 1", 396.5),
            measure("one way (GB/s), driver, device 1 to 0", None),
            measure("the least of all pairs, device 0 to 1", 0.98, False)]

    def test_each_name_is_a_figure_with_a_cell_for_each_pair(self) -> None:
        figures = heat_maps.of_pairs(self.claim)
        self.assertEqual(len(figures), 2)
        cells = {(-box.lane, (box.x0 + box.x1) / 2): box for box in figures[0].boxes}
        self.assertEqual({pair: box.text for pair, box in cells.items()},
                         {(0, 1.0): "392", (1, 0.0): "150"})
        self.assertLess(cells[1, 0.0].shade, 0.2)
        self.assertGreater(cells[0, 1.0].shade, 0.7)
        self.assertIn("150 from device 1 to 0, up to 392 from device 0 to 1", figures[0].alt)
        self.assertEqual([box.text for box in figures[1].boxes], ["396.5"])

    def test_they_are_drawn_and_take_no_lane_of_other_figures(self) -> None:
        figures = drawn.of_claim(self.claim).all()
        added = {f.name for f in figures} - self.before
        self.assertEqual(len(added), 2, added)
        [measures] = [f for f in figures if "measures" in f.name]
        self.assertNotIn("runtime, device", measures.alt)
        for figure in figures:
            if figure.name in added:
                drawing = svg.draw(figure)
                xml.etree.ElementTree.fromstring(drawing)
                self.assertIn("fill-opacity", drawing)

    def test_pairs_that_are_alike_are_equally_dark(self) -> None:
        self.assertEqual(heat_maps.shade(5.0, 5.0, 5.0), heat_maps.DARK)
        self.assertGreater(heat_maps.shade(384.0, 384.0, 396.0), 0.6)
