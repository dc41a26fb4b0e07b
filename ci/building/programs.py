"""The programs: `tollens`, the tests, tools and benchmarks, for every variant of the build.

Like the libraries they are described once, in programs.ninja beside this file, with $folder for
the variant's.
"""

import pathlib

from building.claim_sources import PEER_CLAIMS, PEER_PROCESS, WORKER_CLAIMS
from building.kernel_sources import (
    KERNELS_BENCH, KERNELS_BENCH_TESTED, KERNELS_PROGRAMS, KERNELS_TESTS)
from building.libraries import (
    CUDARTS, ENGINE_ROOM, KERNELS_ROOM, RUNTIME_ROOM, SEAL_ROOM, SOFT_ROOM, SOFT_WHOLE,
    compile_rule, hold, speed)
from building.ninja_file import Ninja
from building.program_parts import (
    ARCHIVE, CLAIMS, CUBINS_ARCHIVE, DRIVER, FUZZ_LIBS, HARNESS_ROOM, KERNELS_ARCHIVE,
    KERNELS_LIBS, LOCKED, ROUNDS, RUNTIME_BENCHES, SEAL_ARCHIVE, SHORT_OF_MEMORY, SOFT_ARCHIVES,
    TESTS_LIBS, WORKER_ARCHIVE)
from building.seal_sources import MEMORY_CLAIMS, SEAL, SEAL_BENCH, SEAL_TESTS
from building.soft_sources import (
    BENCH, CORPUS_TESTS, CUDART_TESTS, FUZZ, FUZZ_DRIVER, FUZZ_TARGETS, SOFT_API_TESTS,
    SOFT_TESTS, TABLE, TABLE_TESTS)
from building.sources import (
    ACCURACY, ACCURACY_TESTS, COMMANDS, COMPUTING_TESTS, ENGINE_TESTS, HARNESS, HARNESS_FUZZ,
    HARNESS_FUZZ_COMMANDS, HARNESS_FUZZ_TARGETS, HARNESS_TESTS, HYPOTHESES, RUNTIME, RUNTIME_TESTS)

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fuzz_name(target: str, prefix: str) -> str:
    """ "fuzz/fuzz_hlog" as the program fuzz-hlog or replay-hlog."""
    return prefix + "-" + target.rsplit("/fuzz_", 1)[-1]


def uses_cuda_h(path: str) -> bool:
    return "TOL_HAS_CUDA_H" in (ROOT / path).read_text(encoding="utf-8")


class Programs:
    """ci/building/programs.ninja as it is being written."""

    def __init__(self) -> None:
        self.n = Ninja()
        self.n.comment("Written by configure.py; do not edit. Read once for each variant.")
        hold(self.n)
        # Criterion's own macros convert implicitly, so its users cannot warn of it. Assertions take
        # longer to optimise than to run: $quick is -O0, and $computes for the few that compute for
        # seconds (COMPUTING_TESTS).
        tests = "-Wno-conversion $criterion_cflags $quick"
        for name, flags in {
                "tool": f"{RUNTIME_ROOM}",
                "tool_soft": f"{SOFT_ROOM}",
                "tool_kernels": f"{KERNELS_ROOM}",
                "tool_harness": f"{HARNESS_ROOM}",
                "harness": f"$speed {HARNESS_ROOM} -Wno-conversion $criterion_cflags",
                "test_runtime": f"{RUNTIME_ROOM} {tests}",
                "test_runtime_cuda": f"{RUNTIME_ROOM} {tests} $cuda_cflags",
                "test_soft": f"{SOFT_ROOM} {tests}",
                "test_soft_cuda": f"{SOFT_ROOM} {tests} $cuda_cflags",
                "test_kernels": f"{KERNELS_ROOM} {tests}",
                "test_worker": f"{ENGINE_ROOM} {tests}",
                "test_seal": f"{SEAL_ROOM} {tests}",
                "test_harness": f"{HARNESS_ROOM} {tests}"}.items():
            compile_rule(self.n, name, f"$common $flags {flags}")
        self.plugin = ""  # the claims on the worker, memory and peers
        self.tools: list[str] = []
        self.tests: list[str] = []
        self.replays: list[str] = []
        self.cubins: list[str] = []  # the programs with kernels, linked with cubins as well

    def objects(self, where: str, rule: str, room: str, sources: list[str],
                after: str = "") -> list[str]:
        return [self.n.build(f"$folder/{where}/{source}.o", rule, f"{room}/{source}.c", after=after,
                             quick="$computes" if source in COMPUTING_TESTS else "",
                             speed=speed(f"{room}/{source}.c") if rule == "harness" else "")
                for source in sources]

    def tests_beside_cuda_h(self, where: str, rule: str, room: str,
                            sources: list[str]) -> list[str]:
        """The same; a test that compares with the toolkit's headers is told where they are. No
        other object differs by whether there is a toolkit."""
        return [self.objects(where, rule + ("_cuda" if uses_cuda_h(f"{room}/{source}.c") else ""),
                             room, [source])[0] for source in sources]

    def program(self, target: str, parts: list[str], after: str = "", libs: str = TESTS_LIBS,
                needs: str = "", driver: str = DRIVER) -> str:
        if KERNELS_ARCHIVE in parts:
            self.cubins.append(self.n.build(f"$folder/cubins/{target}", "exe", " ".join(
                CUBINS_ARCHIVE if part == KERNELS_ARCHIVE else part for part in parts), libs=libs))
        return self.n.build(f"$folder/{target}", "exe", " ".join(parts), needs=needs,
                            after=f"{driver} {after}".strip(), libs=libs)

    def write_harness(self) -> list[str]:
        """The program `tollens`. Returns what the harness's tests are linked with."""
        room = "hypotheses/harness"
        harness = self.objects("harness", "harness", room, [*HARNESS, "run/git2_stub"], CLAIMS)
        commands = self.objects("harness", "harness", room, COMMANDS, CLAIMS)
        attacks = self.objects("hypotheses", "harness", "hypotheses", HYPOTHESES, CLAIMS)
        # Plugins call the harness and the runtime, all of it, in the program that loads them.
        runtime = [f"$folder/runtime/{source}.o" for source in RUNTIME]
        seal = [f"$folder/{source}.o" for source in SEAL]
        self.program("tollens", [*attacks, *commands, *harness, *seal, WORKER_ARCHIVE,
                                 KERNELS_ARCHIVE, *runtime],
                     libs=f"{TESTS_LIBS} '-Wl,--export-dynamic-symbol=tol_*' "
                          "'-Wl,--export-dynamic-symbol=hyp_*'",
                     driver="")  # ci/falsify links a smaller one first
        # What it does not have itself, the program that loads it has.
        claims = self.objects("hypotheses", "tool_harness", "hypotheses", WORKER_CLAIMS, CLAIMS)
        self.plugin = self.n.build("$folder/worker-claims.so", "so", " ".join(claims),
                                   libs="-llzma -lpthread -lm")
        claims = [*self.objects("hypotheses", "tool_harness", "hypotheses", MEMORY_CLAIMS, CLAIMS),
                  *self.objects("hypotheses", "tool_harness", "runtime", ["seal/plain_search"])]
        self.plugin += " " + self.n.build("$folder/memory-claims.so", "so", " ".join(claims),
                                          libs="-lpthread")
        peers = self.objects("hypotheses", "tool_harness", "hypotheses", PEER_CLAIMS, CLAIMS)
        peers.append("$folder/runtime/bench/peer_speed.o")
        self.plugin += " " + self.n.build("$folder/peer-claims.so", "so", " ".join(peers),
                                          libs="-lpthread -ldl")
        hanging = self.objects("harness", "tool_harness", room, ["plugin/hanging_claims"])
        self.plugin += " " + self.n.build("$folder/hanging-claims.so", "so", " ".join(hanging),
                                          libs="-lpthread")
        process = self.objects("hypotheses", "tool_harness", "hypotheses", ["peers/peer_process"])
        self.plugin += " " + self.program(
            "peer-process", [*process, *(f"$folder/hypotheses/{part}.o" for part in PEER_PROCESS)],
            libs="-lpthread -ldl")
        log = [f"$folder/harness/files/{part}.o" for part in ("hdr_encode", "hlog", "atomic_file")]
        self.tools += [self.program(target, [*self.objects("harness", "tool_harness", room,
                                                           [f"files/{source}"]), *log, ARCHIVE],
                                    libs="-lz -lpthread -ldl -lm")
                       for target, source in (("bench-hdr", "hdr_bench"),
                                              ("hdr-interop", "hdr_interop"))]
        return harness

    def write_soft_tools(self) -> list[str]:
        """The soft device's tools. Returns what its tests share with them."""
        room = "runtime/soft"
        table = self.objects("table", "tool_soft", f"{room}/table", TABLE)
        for target in ("ptx-table", "ptx-walk", "fault-table", "case-table", "gemm-table"):
            source = self.objects("table", "tool_soft", f"{room}/table", [target.replace("-", "_")])
            self.tools.append(self.program(target, [*source, *table],
                                           libs="-lz -lpthread -ldl -lm"))
        self.tools.append(self.program("probe-driver", self.objects(
            "soft", "tool_soft", room, ["tools/probe_driver"]), libs="-ldl"))
        parts = [*self.objects("soft", "tool_soft", room, [*FUZZ, *FUZZ_DRIVER]), *table]
        for target in FUZZ_TARGETS:
            source = self.objects("soft", "tool_soft", room, [target])
            self.replays.append(self.program(
                fuzz_name(target, "replay"), [*source, *parts], needs=SOFT_ARCHIVES,
                libs=f"{SOFT_WHOLE} {FUZZ_LIBS}"))
        self.objects("soft", "tool_soft", room, BENCH)
        return table

    def write_harness_replays(self, harness: list[str]) -> None:
        """What ci/check runs over the committed inputs of the harness's fuzz targets."""
        room = "hypotheses/harness"
        parts = [*self.objects("harness", "harness", room, HARNESS_FUZZ),
                 *(f"$folder/harness/{source}.o" for source in HARNESS_FUZZ_COMMANDS),
                 *(f"$folder/soft/{source}.o" for source in FUZZ_DRIVER), *harness]
        for target in HARNESS_FUZZ_TARGETS:
            source = self.objects("harness", "harness", room, [target])
            self.replays.append(self.program(
                fuzz_name(target, "replay"), [*source, *parts],
                needs=f"{KERNELS_ARCHIVE} {ARCHIVE}",
                libs=f"{KERNELS_ARCHIVE} {ARCHIVE} {TESTS_LIBS}"))

    def write_runtime_tools(self) -> str:
        """Benchmarks and the kernels' programs. Returns NVML's stand-in and NVTX's listener."""
        bench = "runtime/bench"
        for what, *more in RUNTIME_BENCHES:
            parts = self.objects("runtime/bench", "tool", bench, [f"{what}_bench", *more])
            self.tools.append(self.program(f"bench-{what}", [*parts, ARCHIVE],
                                           libs="-lpthread -ldl -lm"))
        for target, room, sources in KERNELS_PROGRAMS:
            parts = self.objects(f"kernels/{room}", "tool_kernels", f"kernels/{room}", sources)
            self.tools.append(self.program(target, [*parts, KERNELS_ARCHIVE, ARCHIVE],
                                           libs=KERNELS_LIBS))
        self.objects("kernels/bench", "tool_kernels", "kernels/bench",
                     [source for source in SEAL_BENCH if source not in KERNELS_BENCH])
        parts = [f"$folder/kernels/bench/{source}.o" for source in SEAL_BENCH]
        self.tools.append(self.program("bench-seal", [*parts, KERNELS_ARCHIVE, ARCHIVE],
                                       libs=KERNELS_LIBS))
        self.tools.append(self.program("marks-check", [*self.objects(
            "runtime/bench", "tool", bench, ["marks_check"]), ARCHIVE], libs="-lpthread -ldl -lm"))
        self.tools.append(self.program("compare-sides", self.objects(
            "runtime/bench", "tool", bench, ["compare_sides"]), libs="-ldl"))
        listener = self.n.build("$folder/libnvtx-listener.so", "so", *self.objects(
            "tests", "tool", "runtime", ["core/nvtx_listener"]), libs="-lpthread")
        return listener + " " + self.n.build("$folder/libnvml-stand-in.so", "so", *self.objects(
            "tests", "tool", "runtime", ["health/nvml_stand_in"]))

    def write_tests(self, harness: list[str], table: list[str], nvml: str) -> None:
        stub = ["$folder/harness/run/git2_stub.o"]
        runtime = self.tests_beside_cuda_h("tests", "test_runtime", "runtime", RUNTIME_TESTS)
        soft = self.tests_beside_cuda_h("tests/soft", "test_soft", "runtime/soft",
                                        [*SOFT_TESTS, *SOFT_API_TESTS, *TABLE_TESTS, *CORPUS_TESTS,
                                         *CUDART_TESTS])
        kernels = self.objects("tests", "test_kernels", "kernels", KERNELS_TESTS)
        engine = self.objects("tests/worker", "test_worker", "runtime/worker", ENGINE_TESTS)
        engine += self.objects("tests/seal", "test_seal", "runtime", SEAL_TESTS)
        claims = self.objects("tests", "test_harness", "hypotheses/harness", HARNESS_TESTS, CLAIMS)
        claims += self.objects("tests", "test_harness", "hypotheses", ACCURACY_TESTS) + ACCURACY
        client = self.objects("tests", "tool", "hypotheses/harness", ["program/soft_client"])
        self.program("soft-client", client, libs="-ldl")
        guarded = self.program("guard-client", [
            *self.objects("tests", "tool", "runtime", ["test/guard_client"]), ARCHIVE],
            libs="-lpthread -ldl -lm")
        cudart = " ".join(f"$folder/libcudart.so.{major}" for major in CUDARTS)
        self.tests = [
            self.program("test-runtime", [*runtime, ROUNDS, *stub, ARCHIVE],
                         f"{nvml} {guarded} $folder/libtollens-torch.so",
                         libs=f"{TESTS_LIBS} {LOCKED}"),
            self.program("test-soft", [*soft, *table, "$folder/tests/test/test_locks.o", *stub],
                         f"$folder/probe-driver $folder/gemm-table {cudart}", needs=SOFT_ARCHIVES,
                         libs=f"{SOFT_WHOLE} {TESTS_LIBS} {LOCKED} {SHORT_OF_MEMORY}"),
            self.program("test-kernels", [*kernels, *KERNELS_BENCH_TESTED, *stub, KERNELS_ARCHIVE,
                                          "$folder/tests/test/test_device.o", ARCHIVE],
                         f"$folder/bench-kernels {nvml}"),
            self.program("test-worker", [*engine, "$folder/tests/worker/gguf_maker.o",
                                         "$folder/tests/test/test_device.o",
                                         "$folder/tests/test/test_lives.o", *stub, WORKER_ARCHIVE,
                                         SEAL_ARCHIVE, KERNELS_ARCHIVE, ARCHIVE]),
            self.program("test-harness", [*claims, *harness, KERNELS_ARCHIVE, ARCHIVE],
                         f"$folder/tollens {self.plugin} $folder/soft-client {nvml} {guarded}")]

    def write_targets(self) -> None:
        libraries = ["libtollens.a", "libtollens.so", "libtollens-kernels.a",
                     "libtollens-worker.a", "libtollens-seal.a", "libtollens-soft.so",
                     "libtollens-torch.so",
                     *(f"libcudart.so.{major}" for major in CUDARTS)]
        self.n.build("$variant", "phony", " ".join(
            [*(f"$folder/{library}" for library in libraries), "$folder/tollens", self.plugin,
             *self.tools,
             *self.replays, *self.tests]))
        self.n.build("replays$suffix", "phony", " ".join(self.replays))
        self.n.build("cubins$suffix", "phony", " ".join([CUBINS_ARCHIVE, *self.cubins]))
        for test in self.tests:
            self.n.build(test.replace("$folder/", "") + "$suffix", "run", test, after="$variant")


def write_programs() -> str:
    """The text of ci/building/programs.ninja."""
    programs = Programs()
    harness = programs.write_harness()
    table = programs.write_soft_tools()
    programs.write_harness_replays(harness)
    nvml = programs.write_runtime_tools()
    programs.write_tests(harness, table, nvml)
    programs.write_targets()
    return programs.n.text()
