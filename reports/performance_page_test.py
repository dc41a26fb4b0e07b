"""Tests of the page of performance: python3 -m unittest reports.performance_page_test."""

import pathlib
import tempfile
import unittest

from reports import performance_page, published_index

GEMM = """NVIDIA H100; medians
copy     1024 MiB on the device             driver's                 731.04    2937.6 GB/s
gemm     bf16 64 x 64 x 64 nn               wide, split (chosen)     185.38    741.41 TFLOP/s  {}
gemm     bf16 64 x 64 x 64 nn               naive                    990.00      1.00 TFLOP/s
attention bf16 4 x 4096, 32/8 x 64 causal, pages of 16 paged wgmma      7.87    384.07 TFLOP/s
attention bf16 4 x 4096, 32/8 x 64 causal, pages of 16 tensor           9.87    300.07 TFLOP/s
quant    q4_k f32 4096 x 1 x 14336          reading cold              10.31    3204.4 GB/s
quant    q4_k f32 4096 x 1 x 14336          cold                      21.31    1553.8 GB/s
quant    q4_k f32 4096 x 1 x 14336          hot                       19.97    1657.8 GB/s
gemm: clock 1980 to 1500 MHz, memory 2619 to 2619 MHz
"""


class Page(unittest.TestCase):
    def test_the_newest_output_of_each_machine_is_shown(self) -> None:
        with tempfile.TemporaryDirectory() as made:
            published, rows = pathlib.Path(made), ""
            for name, device, ratio in (("2026-01-02-gpu", "H100", "0.5"),
                                        ("2026-03-01-gpu", "H100", "1.5 of cublas  0.8 of copy"),
                                        ("2026-02-01-gpu", "H200", "2.5 of cublas (2.4 to 2.6)")):
                (published / name).mkdir()
                (published / name / "gemm.txt").write_text(GEMM.format(ratio))
                rows += published_index.row_of(published / name).replace(
                    'device = ""', f'device = "{device}"').replace('code = ""', 'code = "0123abcd"')
            (published / "index.toml").write_text(rows)
            text = performance_page.page(published)
        self.assertIn("H200: commit 0123abcd, 2026-02-01. H100: commit 0123abcd, 2026-03-01.", text)
        wide = "wide, split | 185.38 | 741.41 TFLOP/s"
        self.assertIn(f"| bf16 64 x 64 x 64 nn | {wide} | 2.5 of cublas (2.4\N{EN DASH}2.6) | "
                      f"{wide} | 1.5 of cublas; 0.8 of copy |\n", text)
        self.assertIn("| q4\\_k f32 4096 x 1 x 14336, hot |  | 19.97 | ", text)
        self.assertNotIn("## The pool", text)

    def test_a_device_without_a_row_has_empty_cells(self) -> None:
        index = {"2026-01-01-a": {"device": "A", "code": "1", "name": "2026-01-01-a"},
                 "2026-01-02-b": {"device": "B", "code": "2", "name": "2026-01-02-b"}}
        first, second = (pathlib.Path(name) / "x.txt" for name in index)
        text = performance_page.beside(("shape",), ("us",), (
            (first, {("s",): ("1.0",)}), (second, {("s",): ("2.0",), ("t",): ("3.0",)})), index)
        self.assertIn("| s | 1.0 | 2.0 |", text)
        self.assertIn("| t |  | 3.0 |", text)

    def test_of_each_shape_what_a_call_picks_is_shown(self) -> None:
        found = [row[:3] for row in performance_page.picked(GEMM)]
        self.assertEqual(found, [
            ("bf16 64 x 64 x 64 nn", "wide, split (chosen)", "185.38"),
            ("bf16 4 x 4096, 32/8 x 64 causal, pages of 16", "paged wgmma", "7.87"),
            ("q4_k f32 4096 x 1 x 14336", "cold", "21.31"),
            ("q4_k f32 4096 x 1 x 14336", "hot", "19.97")])

    def test_what_is_published_has_every_section(self) -> None:
        text = performance_page.page()
        titles = [one[1] for one in performance_page.OPERATIONS + performance_page.TEXTS]
        for title in (*titles, "Collectives", "Copies between devices", "Models beside llama.cpp"):
            self.assertIn(f"## {title}\n", text)


if __name__ == "__main__":
    unittest.main()
