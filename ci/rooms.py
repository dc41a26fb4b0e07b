"""The rooms and their floors, from the ground up: the law that ci/floors.py checks and that the
READMEs show.
"""

import dataclasses


@dataclasses.dataclass
class Room:
    """A tree of folders, its floors from the ground up, and what may be included from outside."""

    root: str
    floors: list[tuple[str, str]]  # folders, and what they hold
    paths: tuple[str, ...]         # where an include is looked for, besides the includer's folder
    outside: tuple[str, ...]       # patterns of paths in other rooms
    public: str = ""               # the folder of public headers: each is on the floor of its .c
    homes: dict[str, str] = dataclasses.field(default_factory=dict)  # of public headers without one
    parts: dict[str, str] = dataclasses.field(default_factory=dict)  # private half: of which file
    without: tuple[str, ...] = ()  # folders that are rooms of their own
    readme: str = ""
    # Programs and tests stand above all floors: nothing includes them but themselves.
    above: tuple[str, ...] = ()    # folders
    for_tests: tuple[str, ...] = ()  # files without _test in their names

    def holds(self, path: str) -> bool:
        return path.startswith(self.root + "/") and not path.startswith(self.without)


PUBLIC = "runtime/include/tollens/"

RUNTIME = Room(
    root="runtime", readme="runtime/README.md", public="include/tollens",
    paths=("runtime/", "runtime/include/"), outside=("kernels/*",),
    without=("runtime/soft/", "runtime/worker/engine/", "runtime/seal/"),
    floors=[
        ("core", "statuses and messages, the table of driver functions, the interposer, devices, "
                 "contexts, deadlines, histograms"),
        ("health ptx trace guard",
         "what lives, what leaks and what NVML reports; kernels written at run time; calls and "
         "device work as a timeline; worker processes, one a device"),
        ("watch", "what happens to each block, with rules and alarms"),
        ("objects", "what a context owns: streams, events, modules, buffers, pinned blocks, "
                    "launches, asynchronous copies, host functions"),
        ("pool graph", "the memory pool; graphs and batches"),
        ("transfer", "pageable copies, batches, rows, copies between devices"),
        ("vram torch", "`vram_malloc` and its kin: plain calls and codes; PyTorch's allocator"),
        ("worker", "language models: files, tokenizers"),
        ("include", "`auto.h` and `tollens.h`, the header that users include"),
    ],
    homes={"accesses": "core", "each": "core", "cuda_abi": "core", "pool_watch": "pool",
           "graph": "graph", "trace": "trace", "vram": "vram", "torch": "torch",
           "cuda_abi_types": "core", "cuda_result": "core", "gguf_types": "worker",
           "ptx_builder": "ptx"},
    above=("bench", "test", "examples", "refused"),
    for_tests=("pool_scene", "torch_scene", "nvml_stand_in", "nvtx_listener", "gguf_maker"))

SOFT = Room(
    root="runtime/soft", readme="runtime/soft/README.md", without=("runtime/soft/cudart/",),
    paths=("runtime/soft/", "runtime/include/"),
    outside=tuple(PUBLIC + name for name in ("accesses.h", "cuda_abi.h", "cuda_abi_types.def",
                                             "driver.def", "cuda_result.def")),
    floors=[
        ("base", "options, the arena, JSON, files, reports, the ABI's types and the lists of "
                 "functions"),
        ("memory", "the address space: live and freed ranges, the bytes behind them, their "
                   "shadow"),
        ("ptx", "text to tree: tokens, symbols, opcodes, declarations, functions"),
        ("lower", "tree to micro-operations: control flow, slots, fusion, linking, images"),
        ("machine", "warps, frames, one thread's accesses, barriers, the device heap, printf"),
        ("async", "what runs beside a warp: asynchronous copies, `mbarrier`, tensor maps, wgmma"),
        ("grid", "CTAs, clusters, grids, and their distribution over host threads"),
        ("texture", "textures and surfaces: objects, texels, addressing and filtering"),
        ("ops", "the micro-operations over 32 lanes, compiled once for each processor level"),
        ("check", "races, and the handlers that check an instruction before it is executed"),
        ("state", "devices, handles, threads, contexts, faults on request, allocations, memory "
                  "pools, images"),
        ("queue", "tasks, streams, events, faults in streams, and the threads that carry work "
                  "out"),
        ("graph", "graphs, captures, executable graphs"),
        ("driver", "the life of contexts, what happens around every call, leaks, copies"),
        ("api", "the exported functions: arguments are checked here"),
        ("api/memory api/graph", "the exported functions of memory and of graphs"),
    ],
    parts={"space_list": "space"},
    above=("tools", "tools/bench", "tools/fuzz", "table", "corpus", "test"))

# The CUDA runtime stands on any driver, and takes the driver's ABI alone from the soft device.
CUDART = Room(
    root="runtime/soft/cudart", paths=("runtime/soft/cudart/", "runtime/soft/", "runtime/include/"),
    outside=("runtime/soft/base/abi.h", "runtime/soft/base/functions*.def",
             PUBLIC + "cuda_abi.h"),
    floors=[
        (".", "the CUDA runtime API: what is registered, launches, devices, streams"),
        ("memory", "allocations, copies, arrays, textures"),
        ("graph", "graphs and captures"),
    ],
    above=("test",))

HARNESS = Room(
    root="hypotheses/harness", readme="hypotheses/README.md", public="include/harness",
    paths=("hypotheses/harness/", "hypotheses/harness/include/", "runtime/",
           "runtime/worker/engine/"),
    outside=(PUBLIC + "tollens.h", PUBLIC + "tokenizer.h", "kernels/*",
             "runtime/core/planted.h", "runtime/worker/engine/*"),
    floors=[
        ("files", "the clock, atomic files, HDR histograms and logs, the manifest, CSV"),
        ("claim", "what a claim is; the session: which device, how hard, where the evidence goes"),
        ("measure", "the sampler, intervals, effects, the machine and its conditions"),
        ("record", "what one attack found, as the evidence has it; the timeline"),
        ("attack", "how an attack runs: faults made on purpose, the ledger, walks, load"),
        ("plugin", "plugins: claims of others"),
        ("judge", "verdicts, results, the gate"),
        ("trace", "traces of a pool, read and replayed"),
        ("run", "a run: its schedule, its workers, the evidence of it, what people see of it"),
        ("program", "the program `tollens`: its commands"),
    ],
    homes={"clock": "files", "plugin": "plugin"}, above=("fuzz",),
    for_tests=("program_shell", "sabotage_scene"))

KERNELS = Room(
    root="kernels", paths=("kernels/", "runtime/", "runtime/include/tollens/"),
    outside=(PUBLIC + "tollens.h", "runtime/core/check.h", "runtime/core/any_driver.h",
             "runtime/core/library.h", "runtime/core/monotonic.h", "runtime/health/nvml.h",
             PUBLIC + "interpose.h", "runtime/test/test_device.h"),
    floors=[
        (".", "images, inputs, comparisons, tensor maps"),
        ("choose", "which kernel computes a problem: rows, tables, tunings, loaded kernels"),
        ("row", "rows: where each lies, what softmax, norms and their kin share"),
        ("attention basics checksum collective gemm measure norm quantised softmax",
         "an operation each"),
        ("attention_backward attention_packed attention_e4m3",
         "the gradients of attention, sequences of different lengths, and numbers of 8 bits"),
        ("attention_paged", "attention over keys and values in pages"),
        ("grouped", "products of groups of rows, and what follows them"),
        ("decode", "what a step of a language model adds: embeddings, attention over a cache in "
                   "pages, the choice of a token, prompts in halves"),
        ("tune", "variants of other operations, timed"),
        ("seal", "encrypted memory: key streams, tags, products of encrypted weights"),
    ],
    parts={"attention_problem": "attention", "attention_maps": "attention",
           "attention_paged_maps": "attention_paged",
           "attention_operand": "attention", "attention_backward_problem": "attention_backward",
           "attention_backward_maps": "attention_backward"},
    above=("bench", "sweep"), for_tests=("collective_stage", "kernel_scene", "attention_scene",
                                          "packed_scene", "pages_scene", "choice_dump",
                                          "choice_problems"))

ENGINE = Room(
    root="runtime/worker/engine",
    paths=("runtime/worker/engine/", "kernels/", "runtime/", "runtime/include/tollens/"),
    outside=("kernels/*", PUBLIC + "*", "runtime/core/check.h", "runtime/core/monotonic.h",
             "runtime/worker/gguf_maker.h", "runtime/test/test_device.h",
             "runtime/test/test_lives.h"),
    floors=[(".", "models on a device")], for_tests=("engine_stage", "tiny_model", "host_model"))

SEAL = Room(
    root="runtime/seal",
    paths=("runtime/seal/", "kernels/", "runtime/", "runtime/include/tollens/"),
    outside=("kernels/*", PUBLIC + "*", "runtime/core/check.h", "runtime/core/library.h",
             "runtime/core/context_state.h", "runtime/test/test_device.h",
             "runtime/test/test_lives.h"),
    floors=[(".", "sealed weights, on the host and on a device")],
    for_tests=("plain_search", "sealed_scene"))

CLAIMS = Room(
    root="hypotheses",
    without=("hypotheses/harness/", "hypotheses/worker/", "hypotheses/memory/",
             "hypotheses/peers/"),
    paths=("hypotheses/harness/", "hypotheses/harness/include/", "kernels/"),
    outside=("hypotheses/harness/*", "kernels/*"),
    floors=[(".", "one claim a file")], above=("example_plugin",))

WORKER_CLAIMS = Room(
    root="hypotheses/worker",
    paths=("hypotheses/worker/", "hypotheses/harness/", "hypotheses/harness/include/", "kernels/",
           "runtime/worker/engine/", "runtime/include/tollens/"),
    outside=("hypotheses/harness/*", "kernels/*", "runtime/worker/engine/*", PUBLIC + "*"),
    floors=[(".", "the claims on the worker, their attacks and faults")])

MEMORY_CLAIMS = Room(
    root="hypotheses/memory",
    paths=("hypotheses/memory/", "hypotheses/harness/", "hypotheses/harness/include/", "kernels/",
           "runtime/seal/", "runtime/include/tollens/"),
    outside=("hypotheses/harness/*", "runtime/seal/seal.h", "runtime/seal/plain_search.h",
             PUBLIC + "*"),
    floors=[(".", "the claims on memory, their attacks and faults")])

PEER_CLAIMS = Room(
    root="hypotheses/peers",
    paths=("hypotheses/peers/", "hypotheses/harness/", "hypotheses/harness/include/",
           "runtime/include/tollens/", "runtime/include/", "runtime/"),
    outside=("hypotheses/harness/*", PUBLIC + "*", "runtime/bench/peer_speed.h"),
    floors=[(".", "the claims on peers, its attacks, faults and other process")])

ROOMS = (RUNTIME, SOFT, CUDART, HARNESS, KERNELS, ENGINE, SEAL, CLAIMS, WORKER_CLAIMS,
         MEMORY_CLAIMS, PEER_CLAIMS)
