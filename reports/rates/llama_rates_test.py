"""Tests of the comparison with llama.cpp: python3 -m unittest reports.rates.llama_rates_test."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from reports.rates import llama_rates

MODEL = """model.gguf on a device
                   tokens/s                   p50 ms     p99 ms
pp512             1000.00 +-     1.00
first512            45.00 +-     0.21       21.971     22.135
tg128 @ 1          100.00 +-     1.13        2.728      2.789    1.00 GB/s read
tg128 @ 32        2000.00 +-     3.29        6.455      8.188    1.00 GB/s read
"""
BENCH = """| model | fa |            test |                  t/s |
| ----- | --: | --------------: | -------------------: |
| llama |  1 |           pp512 |       500.00 ± 9.00 |
| llama |  1 |           tg128 |       {tg} ± 0.77 |
"""
BATCHED = """|    PP |     TG |    B |   N_KV |  T_PP s | S_PP t/s |  T_TG s | S_TG t/s |
|-------|--------|------|--------|---------|----------|---------|----------|
|    16 |    128 |    1 |    144 |   0.018 |   888.44 |   0.484 |    50.00 |
|    16 |    128 |   32 |   4608 |   0.055 |  9265.12 |   1.239 |  1000.00 |
"""


class LlamaRates(unittest.TestCase):
    def run_main(self, model: str = MODEL, bench: str = BENCH.format(tg="50.00"),
                 batched: str = BATCHED) -> tuple[int, str]:
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(said), \
                contextlib.redirect_stderr(said):
            for file, text in zip(llama_rates.FILES, (model, bench, batched)):
                (pathlib.Path(name) / file).write_text(text, encoding="utf-8")
            return llama_rates.main([name]), said.getvalue()

    def test_rates_are_compared_by_their_names(self) -> None:
        code, said = self.run_main()
        self.assertEqual(code, 0)
        self.assertIn("pp512: 1000.0 tokens/s, 2.00 of llama.cpp's 500.0\n", said)
        self.assertIn("tg128 @ 1: 100.0 tokens/s, 2.00 of llama.cpp's 50.0\n", said)
        self.assertIn("tg128 @ 32: 2000.0 tokens/s, 2.00 of llama.cpp's 1000.0\n", said)
        self.assertEqual(said.count("\n"), 3)

    def test_less_than_half_is_too_slow(self) -> None:
        self.assertEqual(self.run_main(bench=BENCH.format(tg="200.00"))[0], 0)
        code, said = self.run_main(bench=BENCH.format(tg="200.20"))
        self.assertEqual(code, 1)
        self.assertIn("0.50 of llama.cpp's 200.2, below half", said)
        self.assertEqual(self.run_main(batched=BATCHED.replace("1000.00", "4001.00"))[0], 1)

    def test_a_run_without_a_rate_is_none(self) -> None:
        for wrong, why in (({"model": ""}, "model.txt has no rates"),
                           ({"bench": "no table"}, "llama-bench.txt has no rates"),
                           ({"batched": "no table"}, "llama-batched.txt has no rates"),
                           ({"model": MODEL.replace("tg128 @ 32", "tg128 @ 8")},
                            "lacks tg128 @ 32")):
            code, said = self.run_main(**wrong)
            self.assertEqual(code, 2, wrong)
            self.assertIn(why, said)

    def test_published_runs_are_within_a_factor_of_two(self) -> None:
        found = llama_rates.folders()
        self.assertIn("2026-11-27-h100-llama-3.1-8b-1e79a2da", [folder.name for folder in found])
        for folder in found:
            rates = llama_rates.compare(folder)
            self.assertLessEqual({"pp512", "tg128 @ 1", "tg128 @ 8", "tg128 @ 32"}, set(rates))
            for name, (mine, theirs) in rates.items():
                with self.subTest(run=folder.name, rate=name):
                    self.assertGreaterEqual(mine, llama_rates.LEAST * theirs)


if __name__ == "__main__":
    unittest.main()
