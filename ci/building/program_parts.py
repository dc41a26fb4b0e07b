"""What programs.py links programs with, and where their headers are."""

KERNELS_LIBS = "-llzma -lpthread -ldl -lm"
TESTS_LIBS = f"$criterion_libs -ljansson -lz {KERNELS_LIBS}"
# With runtime/test/test_locks.c, which sees that each unlock has its lock.
LOCKED = "-Wl,--wrap=pthread_mutex_unlock"
# With runtime/soft/test/test_memory.c, which lets one allocation fail.
SHORT_OF_MEMORY = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc"
HARNESS_ROOM = ("-Ihypotheses -Ihypotheses/harness -Ihypotheses/harness/include "
                "-Ibuild/generated -Ikernels -Iruntime/worker/engine -Iruntime/seal "
                "-Iruntime/include/tollens -Iruntime/include -Iruntime")
ARCHIVE, KERNELS_ARCHIVE = "$folder/libtollens.a", "$folder/libtollens-kernels.a"
WORKER_ARCHIVE = "$folder/libtollens-worker.a"
SEAL_ARCHIVE = "$folder/libtollens-seal.a"
CUBINS_ARCHIVE = "$folder/cubins/libtollens-kernels.a"
DRIVER = "$folder/libtollens-soft.so"
SOFT_ARCHIVES = "$folder/soft.a $folder/soft-levels.a"
CLAIMS = "build/generated/claims.def build/generated/beyond.def"
FUZZ_LIBS = "-ljansson -lz -lpthread -ldl -lm"

# The runtime's benchmarks, and the parts of each.
RUNTIME_BENCHES = (["launch"],
                   ["pool", "pool_allocators_bench", "pool_walk_bench", "pool_flight_bench",
                    "pool_costs_bench", "pool_hot_bench", "pool_rounds"],
                   ["transfer", "transfer_reads_bench"], ["watch"], ["peers", "peer_speed"],
                   ["streams", "streams_queues_bench", "streams_traces_bench",
                    "streams_events_bench"])
# Of them, what tests are linked with.
ROUNDS = "$folder/runtime/bench/pool_rounds.o"
