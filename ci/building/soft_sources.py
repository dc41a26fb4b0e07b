"""The sources of the soft device, for configure.py, by folder. A line holds what belongs
together.
"""

from building.sources import within

SOFT = within({
    "base": "arena options json report tensor_map crew",
    "ptx": """
        diagnostic token symbol opcode read_constant read_operand read_vector read_old
        read_variable read_function read_body read_apart read_module
        unite
    """,
    "memory": """
        space space_addresses space_bytes shared_bytes space_copy space_describe space_flip touch
        maker
    """,
    "lower": """
        lower lower_row lower_operand lower_arithmetic lower_half lower_video lower_compare
        lower_move lower_memory lower_order lower_control lower_call lower_tensor control_flow slots
        link check_unit loaded_module linked_image fatbin host_object device_runtime count
        code_write fuse core lower_async lower_mbarrier lower_cluster lower_texture lower_wgmma
        lower_box lower_map
    """,
    "machine": """
        access warp warp_sync warp_valid frame frame_call print barrier finding cluster_barrier
        cluster_map heap shared_layout prior mbarrier_init
    """,
    "async": """
        async bulk reduce mbarrier mbarrier_wait tensor_copy tensor_walk tensor_replace wgmma
        wgmma_factor wgmma_product
    """,
    "grid": "cta cluster grid registers",
    "texture": "texture texel reach mix cube sample fetch surface",
    "check": """
        chunks thread_clock race race_order race_cell race_access race_matrix race_copy race_product
        race_object race_proxy race_exit race_report checks
    """,
})

# The driver API in front of it.
SOFT_API = within({
    "base": "file_text calls result_name line_table call_site trace_line",
    "state": """
        driver_state driver_start handle_set thread_state contexts fault fault_rule
        device_memory managed array mipmap texture_object texture_reference memory_pool
        graph_memory physical jit imported shared_event image kernel_library
        function_attribute occupancy
    """,
    "queue": """
        task event_life stream_value copy_rows kernel_call operation streams stream_fault queue
        perform access_tell stream_order dependence task_fault usage trace_task
    """,
    "graph": """
        task_graph programmatic node_content graph_exec graph_update graph_call capture submit
        user_object
    """,
    "driver": "context_life copy_call leak trace_call call",
    "api": """
        api_entry since not_modelled exports api_device api_primary api_context api_setting
        api_peer api_stream api_stream_attribute api_event api_host_function api_value
        api_module api_link api_library api_function api_log api_occupancy api_launch
        api_launch_old api_texture api_texture_reference
    """,
    "api/memory": """
        api_memory api_host api_managed api_pointer api_ipc api_mapping api_pool api_pool_share
        api_copy api_copy_rows api_copy_array api_array api_mipmap api_fill api_tensor_map
    """,
    "api/graph": """
        api_capture api_graph api_graph_node api_graph_exec api_graph_hint api_graph_dot
        api_user_object
    """,
})

# The CUDA runtime above any driver, and what of it differs between its two libraries.
CUDART = within({
    "cudart": """
        cudart_driver cudart_thread cudart_registry cudart_link cudart_register cudart_launch
        cudart_function cudart_error cudart_stream cudart_device cudart_not_modelled
    """,
    "cudart/memory": """
        cudart_memory cudart_managed cudart_pool cudart_fill cudart_copy cudart_copy_rows
        cudart_batch cudart_channel cudart_array cudart_copy_array cudart_texture
    """,
    "cudart/graph": """
        cudart_node cudart_graph cudart_graph_node cudart_graph_copy cudart_graph_exec
        cudart_capture
    """,
})
CUDART_EDITIONS = within({"cudart": "cudart_exports cudart_properties"})
CUDART_TESTS = within({
    "cudart/test": "test_cudart",
    "cudart": "cudart_error_test cudart_launch_test cudart_types_test",
    "cudart/memory": "cudart_array_test cudart_memory_test",
})

# Compiled once for each processor level.
SOFT_CORE = within({
    "ops": """
        ops_integer ops_carry ops_bits ops_video ops_compare ops_move ops_float ops_round
        ops_half ops_approx ops_convert ops_global ops_shared ops_local ops_atomic ops_async
        ops_texture ops_lane ops_control ops_call ops_tensor ops_tensor_float ops_tensor_f64
        ops_tensor_quads ops_matrix ops_wgmma core_table
    """,
})

SOFT_TESTS = within({
    "test": "test_soft test_abort test_tensor test_wgmma box_model",
    "ops": """half_test vector_test video_test tensor_test wgmma_test wgmma_round_test
        wide_test approx_test convert_test""",
    "check": "thread_clock_test report_test sanitizer_test",
    "base": "arena_test json_test options_test file_text_test",
    "ptx": "token_test read_test read_apart_test forms_test spelling_test mutation_test",
    "machine": """
        diverge_test random_flow_test barrier_test trap_test call_test function_test
        print_test heap_test warp_valid_test
    """,
    "async": """
        async_test mbarrier_test bulk_test reduce_test tensor_copy_test tensor_cluster_test
        tensor_edge_test tensor_image_test tensor_random_test tensor_replace_test
    """,
    "grid": "cluster_test cluster_memory_test",
    "lower": """
        core_test wgmma_form_test link_test count_test lines_test fuse_test
        host_object_test numbers_test
    """,
    "memory": "shadow_test space_bytes_test",
    "queue": "hint_test",
})

SOFT_API_TESTS = within({
    "test": "test_api test_graph test_memory seed_test out_of_memory_test",
    "base": "abi_test call_site_test",
    "api": """
        api_entry_test not_modelled_test api_image_test api_device_test api_context_test
        api_stream_test api_event_test
        api_host_function_test api_value_test api_peer_test api_module_test api_link_test
        api_library_test api_launch_test api_launch_old_test api_threads_test api_texture_test
        api_texture_reference_test api_mipmap_test
    """,
    "api/memory": """
        api_memory_test api_host_test api_managed_test api_pointer_test api_copy_test
        api_mapping_test api_mapping_parts_test api_array_test api_ipc_test
        api_pool_test
    """,
    "api/graph": """
        api_capture_test api_capture_node_test api_graph_test api_graph_exec_test
        api_graph_memory_test
    """,
    "driver": "leak_test trace_call_test",
    "state": "fault_rule_test fault_test",
    "texture": "surface_test",
    "queue": "task_fault_test stream_order_test programmatic_test queue_valid_test",
    "tools": "probe_driver_test",
})

# The instruction table, the program that runs it on any driver, and the oracle that judges it.
TABLE = """
    table_type table_read table_values table_matrix table_probe
    table_text table_kernel table_device table_record
    fault_run case case_value case_box case_place case_texture
""".split()

TABLE_TESTS = within({
    "table/oracle": """
        oracle oracle_number
        oracle_integer oracle_carry oracle_bits oracle_video oracle_float oracle_approximate
        oracle_compare oracle_convert oracle_atomic oracle_cluster oracle_lanes
        oracle_product oracle_tensor
    """,
    "table": "table_test fault_code_test case_test case_record_test gemm_table_test",
})

# Fuzz targets: what they share, each of them, and what drives those of every room with files.
FUZZ = within({"tools/fuzz": "fuzz", "test": "box_model"})
FUZZ_TARGETS = within({"tools/fuzz": """
    fuzz_ptx fuzz_run fuzz_rules fuzz_options fuzz_table fuzz_fatbin fuzz_tensor
"""})
FUZZ_DRIVER = within({"tools/fuzz": "replay"})

# The program that measures the soft device's speed.
BENCH = within({"tools/bench": """
    bench_soft bench_kernels bench_gemm bench_calls
"""})

# Programs that nvcc compiles, and what they must give.
CORPUS_TESTS = within({"corpus": """
    corpus_scene
    corpus_calls_test corpus_data_test corpus_numbers_test corpus_speed_test corpus_waits_test
    corpus_clusters_test corpus_tensors_test corpus_gemm_test images_scene corpus_images_test
    corpus_surfaces_test
"""})
