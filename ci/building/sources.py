"""The sources of each room, for configure.py, by folder. A line holds what belongs together."""


def within(folders: dict[str, str]) -> list[str]:
    """The names in each folder as paths inside the room: "pool/spans", without the suffix."""
    return [f"{folder}/{name}" for folder, names in folders.items() for name in names.split()]


RUNTIME = within({
    "core": """
        status hdr library nvtx nvtx_marks driver interpose planted site device context
        context_streams deadline retire outcome residence handles_valid owner_lock numa numa_pages
    """,
    "health": "nvml health links",
    "ptx": "ptx_value ptx_module ptx_emit ptx_memory",
    "guard": "guard_machine guard_journal guard_frame guard_child guard_jobs guard_device "
             "guard_talk guard guard_worker",
    "trace": """
        trace_clock trace_context trace_run trace_read trace_note trace_mark trace_install
        trace_write
    """,
    "objects": "stream event module memory huge_pages pinned copy launch stream_pool pipeline "
               "host_function",
    "graph": "graph_capture graph_nodes graph_instance batch",
    "pool": """
        spans tickets pages ring times pool_events pool_freed pool_ask long_text pool_snapshot
        pool_trace pool_place pool_large magazine parked pool_report pool_block pool
        mesh_plan mesh_move mesh pool_chunk pool_stitch pool_ladder pool_valid
    """,
    "watch": """
        watch_alarm watch_baseline watch_blocks watch_calls watch_judge watch_kernels watch_rules
        watch_lock watch_visit watch_graphs watch_shares watch_accesses watch
    """,
    "transfer": """
        retry team staging streamed reads pieces host_copy rows peer block_move transfer
    """,
    "vram": "sweep once vram_calls vram_handle",
    "worker": """
        positioned_file gguf_kinds gguf_cursor gguf_read gguf_check gguf
        utf8 unicode_class text_map merger pre_tokenize tokenizer_load tokenizer_encode tokenizer
    """,
})

# PyTorch's allocator: a library of its own, on the runtime's.
TORCH = within({"torch": "torch torch_arena torch_block torch_device torch_report "
                         "torch_statistics torch_waiting"})

RUNTIME_TESTS = within({
    "test": """
        test_device test_death test_lives deadlock_test devices_test failure_test killed_test
        versions_test null_test host_memory_test host_memory_out_test lives_test test_locks
        locks_test
    """,
    "core": """
        status_test owner_lock_test driver_test driver_log_test deadline_test interpose_test
        device_test context_test cuda_abi_test residence_test handles_valid_test fallback_test
        nvtx_test nvtx_marks_test numa_test numa_pages_test
    """,
    "objects": """
        module_test stream_test event_test memory_test copy_test launch_test stream_pool_test
        host_function_test pipeline_test
    """,
    "pool": """
        spans_test pool_test pool_model_test pool_events_test pool_ask_test pool_trace_test
        pool_mesh_test pool_ladder_test pool_scene pool_stitch_test pool_reference_test
        pool_failure_test mesh_plan_test pool_valid_test pool_wipe_test parked_test pool_growth_test
        tickets_test pool_lowest_test
    """,
    "graph": "graph_test batch_test",
    "ptx": "ptx_test ptx_mistakes_test ptx_random_test",
    "guard": "guard_machine_test guard_journal_test guard_jobs_test guard_test guard_walk_test "
             "guard_stress_test",
    "trace": "trace_test trace_clock_test",
    "watch": "watch_test watch_ways_test watch_rules_test watch_baseline_test",
    "transfer": """
        retry_test transfer_test pieces_test bus_test streamed_test ramp_test reads_test
    """,
    "bench": "pool_rounds_test",
    "vram": "vram_test vram_handle_test once_test",
    "torch": "torch_scene torch_test torch_graph_test torch_threads_test",
    "health": "health_test nvml_test links_test",
    "worker": """
        gguf_maker gguf_test gguf_package_test gguf_hostile_test tokenizer_oracle_test
        tokenizer_test text_map_test
    """,
})

# Small programs to be read in this order.
EXAMPLES = """
    example_1_devices example_2_vector_add example_3_pool example_4_pipeline example_5_graph
    example_6_q4_k_product example_7_attention
""".split()

# Programs of the runtime's own mistakes: each must be refused by the compiler.
REFUSED = """
    handle_is_not_an_address kernel_is_not_a_name pinned_is_not_a_buffer event_is_not_a_stream
    async_source_is_pinned
""".split()

# Models on a device: above the kernels.
ENGINE = within({
    "engine": """
        rotation model token_sampler pass_draw share load_plan load_upload load
        device_team pass_graphs pass prompt prompt_make
        session_pages session_steps model_move decode_text worker_cuda
    """,
})

ENGINE_TESTS = within({
    "engine": """
        token_sampler_test device_draw_test rotation_test model_test decode_session_test
        llama_oracle_test worker_cuda_test session_sharing_test session_loss_test cache_test
        prompt_test load_test text_replay_test device_team_test device_loss_test model_move_test
        engine_stage tiny_model host_model
    """,
})

HARNESS = within({
    "files": "text_copy hdr_encode hlog atomic_file manifest walk_csv walk_map",
    "claim": "claim session",
    "measure": "machine interval decide comparison ticks pin single_calls sampler conditions "
               "effect",
    "record": "record timeline",
    "attack": """
        fault_hooks rare_turn sabotage_gross sabotage_rare sabotage ladder ledger pool_walk
        memory_exhaustion module_loads thread_stress attack compare launcher concurrent_kernels
        gpu_clock gpu_timer
    """,
    "plugin": "plugin_file plugin_rules plugins plugin_tests",
    "judge": "limit verdict verdict_effects verdict_judge results gate",
    "trace": "trace_file trace_replay",
    "run": "worker progress process_await runner evidence evidence_text repeats lanes",
    "program": "soft_report nearest",
})

COMMANDS = within({
    "run": "command run_options trial severity limits schedule console",
    "program": """
        tollens command_run command_doctor command_show command_gate command_export command_report
        command_threads command_replay command_model command_model_run command_model_bench
        model_gaps model_load model_devices command_soft command_guard guard_options guard_results
        guard_probe model_guarded
    """,
})

# Fuzz targets: what they share, each of them, and the commands that they call.
HARNESS_FUZZ = within({"fuzz": "fuzz_input"})
HARNESS_FUZZ_TARGETS = within({"fuzz": """
    fuzz_hlog fuzz_hdr fuzz_results fuzz_record fuzz_trace fuzz_plugin fuzz_words fuzz_gguf
"""})
HARNESS_FUZZ_COMMANDS = within({"run": "command run_options", "program": "command_export"})

HARNESS_TESTS = within({
    "files": "hdr_test hlog_test manifest_test walk_map_test",
    "claim": "claim_test",
    "measure": """
        interval_test decide_test ticks_test pin_test machine_test single_calls_test sampler_test
        effect_test
    """,
    "record": "record_test",
    "attack": """
        attack_test sabotage_scene sabotage_test sabotage_rare_test ladder_test ledger_test
        gpu_timer_test
    """,
    "plugin": "plugin_test",
    "judge": "limit_test verdict_test verdict_effects_test gate_test",
    "trace": "replay_test",
    "run": "process_await_test evidence_test lanes_test repeats_test progress_test",
    "program": """
        export_test shell_scene program_test program_choice_test program_trouble_test
        gate_program_test limits_program_test model_program_test model_run_test soft_test
        nearest_test program_terminal_test program_json_test cudart_program_test report_program_test
        guard_program_test saboteur_program_test
    """,
})

# Tests, and what they compare with, that compute for seconds: optimised, unlike the others.
COMPUTING_TESTS = set(within({
    "pool": "pool_scene pool_mesh_test", "gemm": "gemm_oracle_test gemm_exact_test",
    "measure": "single_calls_test sampler_test",
    "async": "tensor_random_test", "corpus": "corpus_gemm_test",
    "table": "oracle oracle_number oracle_product oracle_tensor",
}))

HYPOTHESES = """
    h01_modules_load h02_launches_execute h03_transfers_return h04_launches_cost_little
    h05_gemm_is_right h05_groups_are_right h05_quant_products_are_right
    h06_attention_is_right h06_gradients_are_right h06_packed_is_right h06_paged_is_right
    h06_e4m3_is_right
    h07_q4_k_is_llama_cpps h08_pool_spares_the_driver
    h09_out_of_memory_is_an_error
    h10_streams_overlap
    h11_safety_costs_nothing
    h12_pool_does_not_fragment
    h13_threads_share_a_context
""".split()

# What attacks on the accuracy of kernels share: beside the harness, which knows no kernels.
HYPOTHESES += within({"accuracy": "error_table accuracy drawn_sequences"})
ACCURACY = [f"$folder/hypotheses/{name}.o" for name in HYPOTHESES if name.startswith("accuracy/")]
ACCURACY_TESTS = ["accuracy/error_table_test"]
