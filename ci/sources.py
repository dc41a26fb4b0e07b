"""The sources of each room, for configure.py. A line holds what belongs together."""

RUNTIME = """
    status hdr library driver interpose site nvml health
    trace/trace_clock trace/trace_context trace/trace_run trace/trace_read
    trace/trace_note trace/trace_install trace/trace_write
    device context context_streams deadline retire
    stream event module memory pinned
    copy launch stream_pool pipeline
    host_function graph/graph_capture graph/graph_nodes graph/graph_instance graph/batch
    pool/spans pool/tickets pool/pages pool/ring pool/times pool/pool_events
    pool/freed pool/pool_ask pool/long_text pool/pool_snapshot pool/pool_trace
    pool/pool_place pool/pool_large pool/magazine pool/pool_report pool/pool_block pool/pool
    pool/mesh_plan pool/mesh_move pool/mesh pool/pool_chunk pool/pool_stitch pool/pool_ladder
    transfer/retry transfer/numa transfer/team transfer/staging
    transfer/pieces transfer/host_copy transfer/rows transfer/peer transfer/block_move
    transfer/transfer vram/sweep vram/once vram/vram_calls vram/vram_handle
""".split()

RUNTIME_TESTS = """
    test_device test_lives
    status_test driver_test interpose_test device_test context_test
    module_test stream_test event_test memory_test copy_test launch_test
    pool/spans_test pool/pool_test pool/pool_model_test pool/pool_events_test
    pool/pool_ask_test stream_pool_test host_function_test graph_test batch_test
    pool/pool_trace_test
    pool/pool_mesh_test pool/pool_ladder_test pool/pool_scene pool/pool_stitch_test
    pipeline_test
    trace_test pool/pool_reference_test pool/pool_failure_test pool/mesh_plan_test deadlock_test
    transfer/retry_test transfer/numa_test transfer_test transfer/pieces_test
    vram_test vram_handle_test vram/once_test health_test nvml_test devices_test
    failure_test cuda_abi_test
""".split()

# Small programs to be read in this order.
EXAMPLES = """
    example_1_devices example_2_vector_add example_3_pool example_4_pipeline example_5_graph
    example_6_q4_k_product
""".split()

# Programs of the runtime's own mistakes: each must be refused by the compiler.
REFUSED = """
    kernel_is_not_a_name
    pinned_is_not_a_buffer
    event_is_not_a_stream
    async_source_is_pinned
""".split()

SOFT = """
    arena diagnostic options json report
    space space_addresses space_bytes space_copy space_describe space_flip
    token symbol opcode
    read_constant read_operand read_vector read_old read_variable read_function read_module
    lower lower_operand
    lower_arithmetic lower_half lower_video lower_compare lower_move
    lower_memory lower_order lower_control lower_call lower_tensor
    graph slots unite link image linked_image
    count fuse
    access core warp together frame frame_call print cta barrier grid finding
    async bulk reduce lower_async mbarrier lower_mbarrier cluster lower_cluster heap
    touch
    chunks thread_clock race race_order race_cell race_access race_matrix race_copy race_object
    race_report checks
""".split()

# The driver API in front of it.
SOFT_API = """
    task operation streams queue perform submit stream_order
    task_fault
    task_graph node_content graph_memory graph_exec graph_update graph_call capture user_object
    handle_set contexts thread_state driver_state
    device_memory memory_pool physical copy_call
    file_text jit kernel_library function_attribute occupancy kernel_call
    fault_rule fault leak call api_entry exports
    api_device api_primary api_context api_setting api_peer
    api_memory api_host api_pointer api_ipc api_mapping api_pool
    api_copy api_copy_rows api_fill
    api_stream api_stream_attribute api_event api_host_function api_value
    api_module api_link api_library api_function api_log
    api_occupancy api_launch
    api_capture api_graph api_graph_node api_graph_exec api_graph_hint api_graph_dot api_user_object
""".split()

# Compiled once for each processor level.
SOFT_CORE = """
    ops_integer ops_carry ops_bits ops_video ops_compare ops_move
    ops_float ops_round ops_half ops_approx ops_convert
    ops_global ops_shared ops_local ops_atomic ops_async
    ops_lane ops_control ops_call
    ops_tensor ops_tensor_float ops_tensor_f64 ops_tensor_quads ops_matrix
    core_table
""".split()

SOFT_TESTS = """
    test_soft
    half_test thread_clock_test
    json_test token_test read_test
    diverge_test random_flow_test barrier_test trap_test report_test sanitizer_test core_test
    link_test call_test function_test print_test count_test
    forms_test vector_test video_test spelling_test lines_test
    async_test mbarrier_test bulk_test cluster_test hint_test
    tensor_test
    heap_test
    wide_test
    reduce_test
    mutation_test
    fuse_test
""".split()

SOFT_API_TESTS = """
    test_api test_graph
    abi_test api_entry_test api_device_test api_context_test
    api_memory_test api_host_test api_pointer_test api_copy_test
    api_stream_test api_event_test api_host_function_test api_value_test api_peer_test
    api_mapping_test api_pool_test api_capture_test api_capture_node_test api_graph_test
    api_graph_exec_test api_graph_memory_test
    api_module_test api_link_test api_library_test api_launch_test
    fault_rule_test fault_test task_fault_test
    stream_order_test leak_test seed_test api_threads_test
    probe_driver_test
""".split()

# The instruction table, the program that runs it on any driver, and the oracle that judges it.
TABLE = """
    table_type table_read table_values table_matrix table_probe
    table_kernel table_device table_record
    fault_run
""".split()

TABLE_TESTS = """
    oracle oracle_number
    oracle_integer oracle_carry oracle_bits oracle_video oracle_float oracle_approximate
    oracle_compare oracle_convert oracle_atomic oracle_lanes
    oracle_product oracle_tensor
    table_test fault_code_test
""".split()

# Fuzz targets: what they share, each of them, and what drives them with files.
FUZZ = "fuzz".split()
FUZZ_TARGETS = "fuzz_ptx fuzz_run".split()
FUZZ_DRIVER = "replay".split()

# The program that measures the soft device's speed.
BENCH = """
    bench_soft bench_kernels bench_calls
""".split()

# Programs that nvcc compiles, and what they must give.
CORPUS_TESTS = """
    corpus_run
    corpus_calls_test corpus_data_test corpus_numbers_test corpus_speed_test corpus_waits_test
    corpus_tensors_test
""".split()

# What operations share; then each operation.
KERNELS = """
    kernel_image variant kernel_set
    operand parallel number inputs deviation guarded
    gemm/gemm gemm/gemm_split gemm/gemm_variants gemm/gemm_oracle gemm/gemm_trial
    quant/quant_block quant/quant_draw quant/quantise
    quant/dequantise quant/dequantise_planted
    quant/quant_product quant/quant_product_trial
    attention/attention attention/attention_variants attention/attention_oracle
    attention/attention_trial
    row/row_place row/row_variant softmax/softmax norm/norm row/rope row/pair row/gather row/argmax
    gemm/gemm_planted_variants
""".split()

# The .cu files that are put into the library, as PTX and cubins.
KERNEL_IMAGES = """
    basics/vector_add
    gemm/gemm_1_naive gemm/gemm_2_shared gemm/gemm_3_registers gemm/gemm_4_vector
    gemm/gemm_5_tensor gemm/gemm_6_async gemm/gemm_7_tf32 gemm/gemm_8_sum gemm/gemm_9_gathered
    quant/dequantise_1_naive quant/dequantise_2_wide quant/dequantise_planted
    quant/quant_product_1_naive quant/quant_product_2_rows quant/quant_product_3_integers
    quant/quant_product_4_tensor quant/quant_product_5_staged quant/quant_product_6_early
    attention/attention_1_naive attention/attention_2_tiled attention/attention_3_tensor
    attention/attention_4_decode attention/attention_5_combine attention/attention_6_grouped
    attention/attention_defects
    softmax/softmax_1_naive softmax/softmax_2_registers softmax/softmax_3_online
    softmax/softmax_4_whole softmax/softmax_5_ring
    norm/norm_1_naive norm/norm_2_registers norm/norm_3_whole norm/norm_4_ring
    row/rope_1_naive row/pair_1_pieces row/gather_1_pieces row/argmax_1_block
    gemm/gemm_planted
    quant/quant_product_7_bulk
    norm/norm_5_ahead norm/norm_6_early
    measure/read_words
""".split()

# The program that shows what they cost; an operation is a file.
KERNELS_BENCH = """
    kernel_bench cublas alike gemm_bench quant_bench row_bench attention_bench
""".split()

# The program that runs each of them once, for tools that watch a process.
KERNELS_SWEEP = """
    kernel_sweep launched sweep_matrix
    gemm_sweep attention_sweep quant_sweep rows_sweep decoder_sweep
""".split()

KERNELS_TESTS = """
    variant_test kernel_set_test measure/read_words_test
    operand_test parallel_test number_test inputs_test deviation_test guarded_test
    gemm/gemm_oracle_test gemm/gemm_test gemm/gemm_call_test
    kernel_image_test quant/quant_block_test quant/quantise_test
    quant/dequantise_test quant/quant_product_test quant/quant_product_call_test
    attention/attention_test attention/attention_call_test
    softmax/softmax_test norm/norm_test
    row/row_stage_test row/rope_test row/pair_test row/gather_test row/row_special_test
""".split()

HARNESS = """
    hdr_encode hlog
    folder session machine
    interval decide sampler conditions effect
    claim sabotage ledger pool_walk hoard crowd record verdict verdict_effects
    plugin_file plugin_rules plugins guests
    worker watch runner
    manifest evidence evidence_text results gate repeats
    attack compare launcher grinder
    walk_csv walk_map trace_file trace_replay timeline
    error_table gpu_clock gpu_timer
""".split()

COMMANDS = """
    tollens command_run wishes trial tell command_show command_gate command_export
    command_crowd command_replay
""".split()

HARNESS_TESTS = """
    hdr_test hlog_test record_test verdict_test claim_test evidence_test manifest_test walk_map_test
    attack_test interval_test decide_test sampler_test effect_test verdict_effects_test
    sabotage_test plugin_test ledger_test gpu_timer_test error_table_test
    gate_test repeats_test program_shell program_test program_choice_test program_trouble_test
    gate_program_test export_test replay_test
""".split()

HYPOTHESES = """
    h01_modules_load h02_launches_execute h03_transfers_return
    h04_launches_cost_little
    h05_gemm_is_right
    h06_attention_is_right
    h07_q4_k_is_llama_cpps
    h08_pool_spares_the_driver
    h09_out_of_memory_is_an_error
    h10_streams_overlap
    h11_safety_costs_nothing
    h12_pool_does_not_fragment
    h13_threads_share_a_context
""".split()
