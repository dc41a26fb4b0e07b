#!/usr/bin/env python3
"""Tests of ptx_sources.py: each way in which PTX can be stale is found."""

import pathlib
import unittest

import kernel_image
import ptx_sources
import trial


class PtxSources(trial.Trial):
    def setUp(self) -> None:
        super().setUp()
        self.root = self.folder
        self.write("kernels/basics/fill.cu", '// Fills.\n#include "../tile.cuh"\nint a = 1;\n')
        self.write("kernels/tile.cuh", "int tile = 2;\n")
        ptx_sources.keep(self.write("fixtures/ptx/kernels/fill.ptx.xz", ""), b".version 6.4\n")
        self.write("runtime/soft/corpus/sorting.cu", "int b;\n")
        for name in ("75", "80", "90", "90_lines"):
            self.write(f"fixtures/ptx/corpus/sorting_{name}.ptx", ".version 9.0\n")
        self.assertIn("fixtures/ptx/kernels/fill.ptx.xz: is not recorded: ci/ptx --write",
                      self.findings())
        ptx_sources.write(self.root, [])
        self.assertEqual(self.findings(), [])

    def findings(self) -> list[str]:
        return [f"{path}: {what}" for path, what in ptx_sources.findings(self.root).items()]

    def planned(self, day: int, action: str = "--compile") -> list[str]:
        return [pathlib.Path(path).name
                for path in ptx_sources.plan(self.root, action, [], day)]

    def test_a_comment_and_white_space_change_nothing(self) -> None:
        self.write("kernels/basics/fill.cu",
                 '/* Fills\n memory. */\n#include "../tile.cuh"\nint a  = 1; // one\n')
        self.assertEqual(self.findings(), [])

    def test_text_in_quotes_is_no_comment(self) -> None:
        self.assertEqual(ptx_sources.words('a("http://b");  // c'), 'a("http://b");')

    def test_each_change_is_found(self) -> None:
        kernel, header = "kernels/basics/fill.cu", '#include "../tile.cuh"\n'
        kept = "fixtures/ptx/kernels/fill.ptx.xz"
        changed = ": is stale, its source changed: ci/ptx --write"
        for path, text, found in (
                (kernel, f"{header}int a = 2;\n", [kept + changed]),
                (kernel, f"// Target: compute_80\n{header}int a = 1;\n", [kept + changed]),
                ("kernels/tile.cuh", "int tile = 3;\n", [kept + changed]),
                (kept, ".version 6.5\n", [
                    f"{kept}: was changed by something other than ci/ptx --write"]),
                # PTX with debugging information is not compared with its source.
                ("runtime/soft/corpus/sorting.cu", "int c;\n", [
                    f"fixtures/ptx/corpus/sorting_{target}.ptx{changed}"
                    for target in (75, 80, 90)])):
            before = kernel_image.kept_text(self.root / path)
            ptx_sources.keep(self.root / path, text.encode())
            self.assertEqual(self.findings(), found, path)
            ptx_sources.keep(self.root / path, before)
            self.assertEqual(self.findings(), [])

    def test_writing_one_leaves_the_others_stale(self) -> None:
        self.write("kernels/basics/fill.cu", "int a = 2;\n")
        self.write("runtime/soft/corpus/sorting.cu", "int c;\n")
        ptx_sources.write(self.root, ["fill"])
        self.assertEqual(len(self.findings()), 3)
        ptx_sources.write(self.root, [])
        self.assertEqual(self.findings(), [])

    def test_missing_and_left_over_files_are_found(self) -> None:
        (self.root / "fixtures/ptx/corpus/sorting_80.ptx").unlink()
        (self.root / "kernels/basics/fill.cu").unlink()
        self.assertEqual(self.findings(), [
            "fixtures/ptx/corpus/sorting_80.ptx: is missing: ci/ptx --write",
            "fixtures/ptx/kernels/fill.ptx.xz: is recorded in fixtures/ptx/sources.sha256 and has "
            "no source"])

    def test_other_options_and_another_version_are_stale(self) -> None:
        path = "fixtures/ptx/kernels/fill.ptx.xz"
        made = ptx_sources.all_made(self.root)[path]
        self.assertEqual((made.options, made.version), ("-arch=compute_75", "6.4"))
        recorded = ptx_sources.recorded(self.root)[path][0]
        self.assertEqual(ptx_sources.checksum(made), recorded)
        self.assertNotEqual(ptx_sources.checksum(made._replace(options="-O1")), recorded)
        self.assertNotEqual(ptx_sources.checksum(made._replace(version="7.0")), recorded)

    def test_a_header_may_need_a_newer_version(self) -> None:
        path = "fixtures/ptx/kernels/fill.ptx.xz"
        for line, version in (("// PTX: 6.3\n", "6.4"), ("// PTX: 8.1\n", "8.1"),
                              ("// PTX: 10.0\n", "10.0"), ("// a PTX: 8.1\n", "6.4")):
            self.write("kernels/tile.cuh", f"{line}int tile = 2;\n")
            self.assertEqual(ptx_sources.all_made(self.root)[path].version, version)
        self.write("kernels/tile.cuh", "// PTX: 8.1\nint tile = 2;\n")
        self.assertEqual(self.findings(), [f"{path}: is stale, its source changed: ci/ptx --write"])

    def test_a_changed_record_is_stale(self) -> None:
        record = self.root / ptx_sources.RECORD
        text = record.read_text(encoding="utf-8")
        for column in (0, 1):
            line = next(line for line in text.splitlines() if line.endswith("fill.ptx.xz"))
            fields = line.split()
            fields[column] = "0" * 64
            self.write(ptx_sources.RECORD, text.replace(line, " ".join(fields)))
            self.assertEqual(len(self.findings()), 1)
            self.assertTrue(all("fill.ptx.xz" in self.planned(day) for day in range(12)))

    def test_each_file_is_compiled_on_one_day_of_twelve(self) -> None:
        everything = self.planned(0, "--all")
        self.assertEqual(everything, ["sorting_75.ptx", "sorting_80.ptx", "sorting_90.ptx",
                                      "fill.ptx.xz"])
        days = [self.planned(day) for day in range(700000, 700012)]
        self.assertEqual(sorted(sum(days, [])), sorted(everything))
        self.assertEqual(days[0], self.planned(700012))

    def test_what_is_not_as_recorded_is_compiled_every_day(self) -> None:
        self.write("kernels/tile.cuh", "int tile = 3;\n")
        self.write("fixtures/ptx/corpus/sorting_80.ptx", ".version 9.1\n")
        (self.root / "fixtures/ptx/corpus/sorting_75.ptx").unlink()
        for day in range(12):
            self.assertLessEqual({"fill.ptx.xz", "sorting_75.ptx", "sorting_80.ptx"},
                                 set(self.planned(day)))

    def test_no_kept_name_follows_from_where_a_source_lay(self) -> None:
        kept = pathlib.Path(__file__).resolve().parents[1] / "fixtures/ptx/kernels"
        paths = sorted(kept.glob("*.ptx.xz"))
        self.assertGreater(len(paths), 100)
        for path in paths:
            text = kernel_image.kept_text(path).decode()
            self.assertNotRegex(text, "_INTERNAL_(?!0{8}_)", path.name)

    def test_writing_names_sources_and_includes_debugging_information(self) -> None:
        self.assertEqual(ptx_sources.plan(self.root, "--write", ["fill"], 0),
                         ["fixtures/ptx/kernels/fill.ptx.xz"])
        self.assertEqual(len(ptx_sources.plan(self.root, "--write", ["sorting"], 0)), 4)
        self.assertEqual(len(ptx_sources.plan(self.root, "--write", [], 0)), 5)
        self.assertEqual(ptx_sources.all_made(self.root)[
            "fixtures/ptx/corpus/sorting_90_lines.ptx"].options, "-arch=compute_90 -lineinfo")


if __name__ == "__main__":
    unittest.main()
