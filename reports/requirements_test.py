"""Tests of the requirements and of what is written of documents."""

import pathlib
import re
import tempfile
import unittest
import unittest.mock

from reports import made_evidence, pack, requirements, results_page, skips, written

DEMAND = '[[demand]]\nid = "X"\ntext = "t"\nsource = "004 1"\nchecks = ["a/b*"]\n'


class Requirements(unittest.TestCase):
    def load(self, text: str) -> "list[dict[str, object]]":
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "requirements.toml")
            path.write_text(text)
            return requirements.load(path)[0]

    def test_every_numbered_demand_is_there(self) -> None:
        names = {str(demand["id"]) for demand in requirements.load()[0]}
        for wanted in (*(f"H{n}" for n in range(1, 14)), *(f"M{n}" for n in range(1, 15)),
                       *(f"RF-{n}" for n in range(1, 16)), *(f"RISK-{n}" for n in range(1, 6)),
                       *(f"VO-{n}" for n in (5, 6, 8, 9)), *(f"WC-{n}" for n in range(1, 7)),
                       *(f"FW-{n}" for n in range(1, 9)), *(f"FC-{n}" for n in range(1, 61))):
            self.assertIn(wanted, names)
        for begin in (*(f"CRT-00{n}" for n in range(1, 7)), "VO-1.", "VO-2.", "VO-3.", "ACC-"):
            self.assertTrue(any(name.startswith(begin) for name in names), begin)
        self.assertEqual(len([p for p in requirements.load()[1] if p["name"][0].isdigit()]), 14)

    def test_numbers_have_no_gaps(self) -> None:
        numbers: "dict[str, set[int]]" = {}
        for demand in requirements.load()[0]:
            found = re.fullmatch(r"([A-Z]+-?)(\d+)(?:\.(\d+))?", str(demand["id"]))
            assert found, demand["id"]
            kind, number, part = found.groups()
            numbers.setdefault(kind, set()).add(int(number))
            if part:
                numbers.setdefault(f"{kind}{number}.", set()).add(int(part))
        for kind, seen in numbers.items():
            self.assertEqual(seen, set(range(1, max(seen) + 1)), kind)

    def test_nonsense_is_refused(self) -> None:
        self.assertEqual(len(self.load(DEMAND)), 1)
        for old, new, words in (("004 1", "005", "none of the documents"), ("a/b*", "a b", 'no "s'),
                                ("a/b*", "step x: a_test::test_b", "there is no test_b in"),
                                ('["a/b*"]', "[]", "open"), ("text", "texts", "no text"),
                                ('"X"', '"X"\nmore = 1', "not known"), ("[[", "[", ""),
                                ("[[demand]]", "[demand]", "list of tables"),
                                ('"004 1"', "4", "a source that is no text"),
                                ('["a/b*"]', '"a/b"', "checks that is no list of texts"),
                                ('"a/b*"', "7", "checks that is no list of texts"),
                                (DEMAND, "demand = 7", "list of tables"),
                                (DEMAND, "[[principle]]\nname = 'p'\ndecision = 'd'", "no see")):
            with self.assertRaisesRegex(ValueError, words, msg=new):
                self.load(DEMAND.replace(old, new, 1))
        with self.assertRaisesRegex(ValueError, "twice"):
            self.load(DEMAND + DEMAND)
        with self.assertRaisesRegex(ValueError, "not there"):
            self.load(DEMAND + '[[principle]]\nname = "p"\ndecision = "d"\nsee = ["absent"]\n')

    def test_all_seven_citations_have_a_standing_and_lead_somewhere(self) -> None:
        self.assertEqual([one["number"] for one in requirements.citations()], [1, 2, 3, 4, 5, 6, 7])
        good = ('[[citation]]\nnumber = 1\ntitle = "t"\nfound = "f"\nstanding = "peer-reviewed"\n'
                'identifier = "doi:10.1000/x"\ninstead = "reports/published/README.md"\n')
        for old, new, words in (("", "", ""), ("= 1", "= 2", "no number"), ('"f"', '""', "nothing"),
                                ("peer-reviewed", "a blog", "standing"),
                                ("doi:10.1000/x", "somewhere", "leads nowhere"),
                                ("README", "ABSENT", "there is no reports/published/ABSENT")):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "requirements.toml")
                path.write_text(good.replace(old, new, 1))
                if not words:
                    self.assertEqual(len(requirements.citations(path)), 1)
                    continue
                with self.assertRaisesRegex(ValueError, words, msg=new):
                    requirements.citations(path)

    def test_a_check_that_is_not_there_or_ran_nothing_is_told(self) -> None:
        demands = self.load(DEMAND.replace('"a/b*"', '"a/b*", "H4", "step asan"'))

        def wrong(ran: "dict[str, str]") -> "list[str]":
            found, not_here = requirements.missing(demands, ran, {"asan": ""}, set())
            self.assertEqual(not_here, [])
            return found

        ran = {"a/bc": "", "a/bd": "", "H4": ""}
        self.assertEqual(wrong(ran), [])
        self.assertEqual(wrong({**ran, "H4": "none of its attacks ran"}),
                         ["X: H4 should have run: none of its attacks ran"])
        self.assertEqual(wrong({"H4": ""}), ["X: there is no a/b*"])
        self.assertEqual(wrong({"a/bd": ""}), ["X: there is no H4"])

    def test_a_step_counts_where_it_ran_and_passed(self) -> None:
        demands = self.load(DEMAND.replace('"a/b*"', '"step asan"'))

        def found(**files: str) -> "tuple[list[str], list[str]]":
            with tempfile.TemporaryDirectory() as folder:
                for name, text in files.items():
                    pathlib.Path(folder, name.replace("_", "-")).write_text(text)
                return requirements.missing(demands, {},
                                            *requirements.read_steps(pathlib.Path(folder)))

        self.assertEqual(found(ran="build\nasan\n", failed="", skipped=""), ([], []))
        for files, words in (({"ran": "build\nasan\n", "failed": "asan\n"}, "failed"),
                             ({"ran": "asan-all\n", "failed": ""}, "did not run"),
                             ({}, "did not run")):
            self.assertEqual(found(**files), ([f"X: step asan {words}"], []))
        for name in ("skipped", "left_out"):
            self.assertEqual(found(ran="build\n", **{name: "asan no compiler for it\n"}),
                             ([], ["not run here: X: step asan: no compiler for it"]))
            self.assertEqual(found(ran="build\n", **{name: "asan\n"})[1],
                             ["not run here: X: step asan: skipped without a reason"])

    def test_a_test_may_skip_for_a_declared_reason_that_is_true_here(self) -> None:
        demands = self.load(DEMAND)
        conditions = (("no toolkit", lambda: True), ("no disk", lambda: False))
        with unittest.mock.patch.object(skips, "CONDITIONS", conditions):
            for skipped, not_here, wrong in (
                    ("no toolkit of 13.0", ["not run here: X: a/b*: no toolkit of 13.0"], []),
                    ("no disk to mount", [], ["X: a/b should have run: no disk to mount"]),
                    ("test was skipped", [], ["X: a/b should have run: test was skipped"])):
                self.assertEqual(requirements.missing(demands, {"a/b": skipped}, {}, set()),
                                 (wrong, not_here))
                # Another test of the check ran: the demand was tested.
                self.assertEqual(requirements.missing(demands, {"a/b": skipped, "a/bc": ""}, {},
                                                      set()), (wrong, []))

    def test_each_declared_reason_is_one_that_a_test_gives(self) -> None:
        sources = "".join(path.read_text(encoding="utf-8") for room in ("runtime", "kernels")
                          for path in requirements.ROOT.glob(f"{room}/**/*_test.c"))
        for begin, _ in skips.CONDITIONS:
            self.assertTrue(f'cr_skip_test("{begin}' in sources, begin)

    def test_a_reason_is_true_by_what_is_on_this_machine(self) -> None:
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.object(skips, "ROOT", pathlib.Path(folder)):
            pathlib.Path(folder, "build").mkdir()
            config = pathlib.Path(folder, "build/config.ninja")
            config.write_text("cuda_cflags = -DTOL_HAS_CUDA_H -isystem /cuda/include\n")
            self.assertFalse(skips.lacks_cuda_h())
            config.write_text("cuda_cflags = \n")
            self.assertTrue(skips.lacks_cuda_h())
        absent = OSError("libcuda.so.1: cannot open shared object file: No such file or directory")
        for loaded, expected in ((absent, False), (OSError("wrong ELF class"), True), (None, True)):
            with unittest.mock.patch("ctypes.CDLL", side_effect=loaded):
                self.assertEqual(skips.has_libcuda(), expected)
        for device, expected in (("soft", True), ("cuda", False)):
            with unittest.mock.patch.dict("os.environ", TOLLENS_DEVICE=device):
                self.assertEqual(skips.is_soft(), expected)

    def test_skipped_tests_did_not_run(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "plain-test-x.tap").write_text(
                "TAP version 13\nok - a::b  # SKIP no device\nnot ok - a::c oops\n"
                "ok - a::d (0.1s)\nok - a::e  # SKIP\n")
            pathlib.Path(folder, "plain-test-y.tap").write_text(
                "ok - a::b  # SKIP no device\nok - a::e (0.1s)\n")
            self.assertEqual(requirements.read_tap(pathlib.Path(folder)),
                             {"a/b": "no device", "a/c": "", "a/d": "", "a/e": ""})
            with self.assertRaisesRegex(ValueError, "step tests"):
                requirements.read_tap(pathlib.Path(folder, "absent"))

    def test_what_is_open_is_never_done(self) -> None:
        demand = {"id": "X", "checks": ["H3", "a/b"], "open": "half of it"}
        self.assertEqual(requirements.state(demand, {"H3": "survived"}), "open: half of it")
        del demand["open"]
        for verdicts, word in (({"H3": "survived"}, "survived"), ({}, "not tested"),
                           ({"H3": "falsified"}, "falsified")):
            self.assertEqual(requirements.state(demand, verdicts), word)
        self.assertEqual(requirements.state({"checks": ["h10/copies"]}, {"H10": "inconclusive"}),
                         "inconclusive")
        self.assertEqual(requirements.state({"checks": ["a/b", "step asan"]}, {}), "tested")


class Written(unittest.TestCase):
    def test_the_newest_run_that_tested_a_claim_counts(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for run, verdict, begin in (("a", "survived", 3.0), ("b", "falsified", 5.0),
                                        ("c", "not_tested", 9.0)):
                made_evidence.make(folder / "made", made_evidence.result(verdict=verdict),
                                   begin_s=begin)
                pack.pack(folder / "made", folder / run)
            runs = results_page.read_published(folder)
            self.assertEqual(results_page.verdicts(runs), {"H3": "falsified"})
            self.assertIn("| H3 | one \\<copy\\> in 10 is skipped | one copy in 99 is skipped |",
                          results_page.limits_block(runs))
            self.assertIn("| H3 |  | copies are late |", results_page.limits_block(runs))
            self.assertIn("No published run", results_page.limits_block([]))

    def test_a_block_stands_between_its_marks(self) -> None:
        text = ("a\n<!-- x: written by reports/written.py -->\nold\n<!-- end of x -->\nb\n")
        new = written.with_block(text, "x", "new \\1", pathlib.Path("f"))
        self.assertIn("-->\nnew \\1\n<!--", new)
        self.assertNotIn("old", new)
        for bad in ("", text + text):
            with self.assertRaisesRegex(ValueError, "once"):
                written.with_block(bad, "x", "new", pathlib.Path("f"))


if __name__ == "__main__":
    unittest.main()
