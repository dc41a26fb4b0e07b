"""The sources of sealed memory, for configure.py: the library, its tests, its benchmark, the claims
on it. Its kernels are with the others, in ci/building/sources.py.
"""

from building.sources import within

# Sealed weights: above the kernels, beside the engine.
SEAL = within({
    "seal": """
        libcrypto locked seal_key seal_rows seal_manifest seal_pack seal_file
        sealed sealed_verify sealed_use
    """,
})

SEAL_TESTS = within({
    "seal": """
        libcrypto_test locked_test seal_pack_test plain_search sealed_scene
        sealed_test sealed_ways_test sealed_scenarios_test
    """,
})

# Sealed memory beside plain: a program of its own.
SEAL_BENCH = """
    kernel_bench bench_program bench_json bench_limits bench_peer device_state ggml_times alike
    seal_bench
""".split()

# The claims on memory: a plugin too.
MEMORY_CLAIMS = within({
    "memory": """
        memory_claims memory_faults seal_stage s1_nothing_stands_plain s1_changes_are_seen
        watch_stage s2_ways_out s2_kernels_and_graphs s2_rates_and_work
    """,
})
