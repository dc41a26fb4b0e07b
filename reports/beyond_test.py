"""Tests of beyond.toml: python3 -m unittest reports.beyond_test."""

import pathlib
import tempfile
import unittest

from reports import beyond, thresholds


class Beyond(unittest.TestCase):
    def test_claims_become_rows_of_their_plugin(self) -> None:
        claims = beyond.load()
        self.assertEqual({claim["plugin"] for claim in claims.values()},
                         {"worker", "memory", "order", "peers"})
        text = beyond.as_c(claims)
        for part in ('WORKER_SABOTEURS(W3, {.name = "residency_always_true", '
                     ".forced = HYP_MUST_FALSIFY}, ", "{.name = NULL})",
                     'PEERS_CLAIM(P2, .id = "P2", .title = "Peer copies are as fast',
                     ".threshold = 0.97, .tolerance = 0.01, .direction = HYP_ABOVE, "
                     ".shares_device = false, .words = {.is_measured = true, ",
                     '.ladders = (const char *const[]){"wait_dropped_one_in=4,16,64,256,1024", ',
                     ".shares_device = true, .words = {.is_measured = false, "):
            self.assertIn(part, text)

    def test_nonsense_is_refused(self) -> None:
        text = (thresholds.HYPOTHESES / "beyond/beyond.toml").read_text()
        for old, new, message in (
                ("[W1]", "[H14]", "not an id"), ("[W1]", "[w1]", "not an id"),
                ('plugin = "worker"', "", "no plugin"),
                ('plugin = "worker"', 'plugin = "../x"', "not the name of a folder"),
                ("tolerance = 0.25", "tolerance = -1", "not negative"),
                ("measured = true", "measured = 1", "measured is neither"),
                ("measured = true", "timed = true", "not known: timed"),
                ("alone = true", "alone = 1", "alone is neither"),
                ('control = """', 'controls = """', "no control"),
                ('prediction = "0 violations."', 'prediction = "a\\nb"', "printable"),
                ('limits = ["wait_dropped_one_in=', 'limits = ["wait_dropped_one_in=0,',
                 "an amount that is not above 0"),
                ("falsified = [", "not_falsified = [", "needs saboteurs"),
                ("[W1]", "[W1", "beyond.toml")):
            self.assertIn(old, text)
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "beyond").mkdir()
                pathlib.Path(folder, "beyond/beyond.toml").write_text(text.replace(old, new, 1))
                with self.assertRaisesRegex(ValueError, message, msg=new):
                    beyond.load(pathlib.Path(folder))


if __name__ == "__main__":
    unittest.main()
