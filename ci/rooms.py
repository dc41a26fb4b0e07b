"""The rooms and their floors, from the ground up: the law that ci/floors.py checks and that the
READMEs show.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Room:
    """A tree of folders, its floors from the ground up, and what it may include of other rooms.

    A path belongs to the room with the longest root. Programs and tests are above all floors: files
    named *_test or *_scene, files in a folder test/, and files in the folders of `above`.
    """

    root: str
    floors: tuple[tuple[str, str], ...]  # folders, and what they hold
    below: tuple[str, ...] = ()          # what paths of other rooms begin with
    above: tuple[str, ...] = ()          # folders of programs and tests
    public: str = ""                     # its public headers: each is on the floor of its .c
    readme: str = ""


PUBLIC = "runtime/include/tollens/"
# The driver's ABI, which the soft device and its CUDA runtime have in common with the runtime.
ABI = tuple(PUBLIC + name for name in ("accesses.h", "cuda_", "driver.def", "plain_text.h"))

ROOMS = (
    Room(root="runtime/include", floors=((".", "public headers"), ("tollens", "public headers"))),
    Room(
        root="runtime/driver", readme="runtime/README.md", below=(PUBLIC,), public=PUBLIC,
        floors=(
            ("core", "statuses and messages, the table of driver functions, the interposer, "
                     "devices, contexts, deadlines, histograms"),
            ("health ptx trace guard",
             "leaks and what NVML reports; PTX that is generated at run time; a timeline of calls "
             "and device work; worker processes, one per device"),
            ("watch", "what driver calls do to each block of memory, with rules and alarms"),
            ("objects", "what a context owns: streams, events, modules, buffers, pinned blocks, "
                        "launches, asynchronous copies, host functions"),
            ("pool graph", "the memory pool; graphs and batches"),
            ("transfer", "pageable copies, batches, rows, copies between devices"),
            ("vram torch", "`vram_malloc` and the other `vram_` functions, which return plain "
                           "codes; PyTorch's allocator"),
        ),
        above=("bench", "test", "refused")),
    Room(
        root="runtime/soft", readme="runtime/soft/README.md", below=(*ABI, "runtime/soft/audit/"),
        floors=(
            ("base", "options, the arena, JSON, files, findings, the ABI's types and the lists of "
                     "functions"),
            ("memory", "the address space: allocated and freed ranges, their bytes and their "
                       "shadow"),
            ("ptx", "text to tree: tokens, symbols, opcodes, declarations, functions"),
            ("lower", "tree to micro-operations: control flow, slots, fusion, linking, images"),
            ("machine", "warps, frames, one thread's accesses, barriers, the device heap, printf"),
            ("async", "what runs concurrently with a warp: asynchronous copies, `mbarrier`, tensor "
                      "maps, wgmma"),
            ("grid", "CTAs, clusters, grids, and their distribution over host threads"),
            ("texture", "textures and surfaces: objects, texels, addressing and filtering"),
            ("ops", "the micro-operations over 32 lanes, compiled once for each processor level"),
            ("check", "races, and the handlers that check an instruction before it is executed"),
            ("state", "devices, handles, threads, contexts, injected faults, allocations, memory "
                      "pools, images"),
            ("queue", "tasks, streams, events, faults in streams, and the threads that execute "
                      "tasks"),
            ("graph", "graphs, captures, executable graphs"),
            ("driver", "contexts, what happens around every call, leaks, copies"),
            ("api", "the exported functions: arguments are checked here"),
            ("api/memory api/graph nvml", "the exported functions of memory, graphs and NVML"),
        ),
        above=(*"toolchain tools tools/bench tools/fuzz table table/oracle corpus test".split(),)),
    # The CUDA runtime works on any driver, and takes the driver's ABI alone from the soft device.
    Room(
        root="runtime/soft/cudart",
        below=(*ABI, "runtime/soft/base/abi.h", "runtime/soft/base/functions"),
        floors=(
            (".", "the CUDA runtime API: what is registered, launches, devices, streams"),
            ("memory", "allocations, copies, arrays, textures"), ("graph", "graphs and captures"),
        )),
    # What is loaded before all else, and depends on nothing but the C library.
    Room(root="runtime/soft/audit", floors=((".", "which libraries a program gets"),)),
    Room(
        root="kernels",
        below=(PUBLIC, "runtime/driver/core/", "runtime/driver/health/nvml.h",
               "runtime/driver/test/"),
        floors=(
            (".", "images, inputs, comparisons, tensor maps"),
            ("blas", "what runtime/cublas queues: products and sums of any strides, norms"),
            ("choose", "which kernel computes a problem: rows, tables, tunings, loaded kernels"),
            ("row", "rows: where each lies, what softmax, norms and their kin share"),
            ("attention", "the table of the kernels of attention"),
            ("attention/forward basics checksum collective gemm measure norm "
             "quantised/formats softmax",
             "an operation each, and the formats of quantised weights"),
            ("attention/backward attention/packed attention/e4m3",
             "the gradients of attention, sequences of different lengths, and numbers of 8 bits"),
            ("attention/paged quantised/product",
             "attention over keys and values in pages; products of quantised weights"),
            ("grouped quantised/linear",
             "products of groups of rows, and what follows them; a decoder's products"),
            ("decode", "what a step of a language model adds: embeddings, attention over a paged "
                       "cache, the choice of a token, prompts in fp16"),
            ("tune", "variants of other operations, timed"),
            ("seal", "encrypted memory: key streams, tags, products of encrypted weights"),
        ),
        above=("bench", "sweep", "ladder")),
    Room(
        root="runtime/models",
        below=(PUBLIC, "runtime/driver/core/", "runtime/driver/test/", "kernels/"),
        floors=(
            ("gguf", "a language model's file: keys, tensors, their formats"),
            ("tokenizer", "text to tokens and back"),
            ("engine seal", "a model on one or more devices; weights that are encrypted on the "
                            "host, in files and on the device"),
        )),
    # A library of its own, which programs load in place of NVIDIA's.
    Room(
        root="runtime/cublas", readme="runtime/cublas/README.md",
        below=(PUBLIC, "kernels/", "runtime/driver/test/"),
        floors=(
            ("base", "handles, launches, products, names of statuses"),
            ("blas lt", "the exported functions of libcublas; of libcublasLt"),
        ),
        above=("test",)),
    Room(
        root="hypotheses/harness", readme="hypotheses/README.md",
        public="hypotheses/harness/include/",
        below=(PUBLIC + "tollens.h", PUBLIC + "plain_text.h", "runtime/driver/core/planted.h",
               "runtime/program/commands.h"),
        floors=(
            ("include/harness", "public headers"),
            ("files", "the clock, atomic files, HDR histograms and logs, the manifest, CSV"),
            ("claim", "what a claim is; the session: device, mode, where the evidence goes"),
            ("measure", "the sampler, intervals, effects, the machine and its conditions"),
            ("record", "what one attack found, in the form of the evidence; the timeline"),
            ("trace", "recorded traces of allocators, read and replayed"),
            ("attack", "how an attack runs: injected faults, memory counts, pool walks, load"),
            ("plugin", "plugins: claims of other libraries"),
            ("judge", "verdicts, results, the gate"),
            ("run", "a run: its schedule, its workers, its evidence, its output"),
            ("program", "the program `tollens`: the commands about claims"),
        ),
        above=("fuzz", "test")),
    # The other commands of `tollens`: they need the harness's files and options.
    Room(
        root="runtime/program",
        below=(PUBLIC, "runtime/models/", "kernels/", "hypotheses/harness/", "runtime/soft/audit/"),
        floors=((".", "the commands of `tollens` that are not about claims"),)),
    Room(
        root="hypotheses", below=("hypotheses/harness/", "kernels/", PUBLIC + "plain_text.h"),
        floors=(("accuracy", "what attacks on the accuracy of kernels share"),
                (". h05 h06", "the claims, one per file or folder")), above=("example_plugin",)),
    Room(
        root="hypotheses/beyond",
        below=("hypotheses/harness/", "kernels/", "runtime/models/", PUBLIC,
               "runtime/driver/bench/peer_speed.h", "runtime/driver/pool/pool_state.h"),
        floors=((".", "what the claims beyond the thirteen share"),
                ("worker memory order peers", "the claims of a plugin each"))),
)
