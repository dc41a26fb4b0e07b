"""The sources of the kernels' library, its tests and its programs, as in sources.py."""

# What operations share; then each operation.
KERNELS = """
    kernel_image choose/choose choose/cost choose/plan choose/plan_map choose/tuning
    choose/kernel_set
    operand boxes parallel number inputs deviation guarded swapped
    gemm/gemm_call gemm/gemm_check gemm/gemm_launch gemm/gemm_maps gemm/gemm_pack gemm/gemm_rows
    gemm/gemm_oracle gemm/gemm_exact gemm/gemm_trial
    grouped/grouped_call grouped/grouped_check grouped/grouped_rows grouped/grouped_planted
    grouped/grouped_trial
    tune/tune
    quantised/quant_block quantised/quant_draw quantised/quantise
    quantised/dequantise quantised/dequantise_planted
    quantised/product_table quantised/product_check quantised/product_split
    quantised/product_launch quantised/product quantised/quant_product
    quantised/quant_product_planted
    quantised/quant_product_trial
    attention/attention attention/attention_maps attention/attention_variants
    attention/attention_operand attention/attention_oracle
    attention/attention_exact attention/attention_matrix attention/attention_trial
    attention_backward/attention_backward attention_backward/attention_backward_maps
    attention_backward/attention_backward_variants
    attention_backward/attention_backward_oracle attention_backward/attention_backward_trial
    attention_packed/attention_packed attention_packed/packed_stage
    attention_packed/attention_packed_trial
    attention_paged/attention_paged attention_paged/attention_paged_maps
    attention_paged/attention_paged_trial
    attention_e4m3/attention_e4m3 attention_e4m3/attention_e4m3_oracle
    attention_e4m3/attention_e4m3_trial
    row/row_place row/row_variant softmax/softmax norm/norm row/rope row/pair row/gather row/argmax
    row/top_k
    gemm/gemm_planted
    checksum/crc32c checksum/checksum seal/chacha seal/tagger seal/seal_chunks
    seal/sealed_product
    collective/collective_create collective/collective_calls collective/collective_ways
    collective/gather_columns
    collective/collective_socket collective/collective_meeting collective/collective_window
    collective/collective_link collective/collective_join
        place_check choose/struct_launch quantised/weight_format quantised/matrix_check
    quantised/rounded quantised/linear_problem quantised/linear_product quantised/linear
    quantised/linear_pair decode/best decode/draw decode/draw_host decode/embed decode/paged
    decode/paged_step decode/halves
""".split()

# The .cu files that are put into the library, as PTX and cubins.
KERNEL_IMAGES = """
    basics/vector_add
    gemm/gemm_1_naive gemm/gemm_2_shared gemm/gemm_3_registers gemm/gemm_4_vector
    gemm/gemm_5_tensor gemm/gemm_6_async gemm/gemm_7_tf32 gemm/gemm_8_sum gemm/gemm_9_gathered
    gemm/gemm_10_hopper gemm/gemm_11_pack gemm/gemm_12_narrow gemm/gemm_13_tf32
    quantised/dequantise_1_naive quantised/dequantise_2_wide quantised/dequantise_planted
    quantised/quant_product_1_naive quantised/quant_product_2_rows
    quantised/quant_product_3_integers
    quantised/quant_product_4_tensor quantised/quant_product_5_staged
    quantised/quant_product_6_early
    attention/attention_1_naive attention/attention_2_tiled attention/attention_3_tensor
    attention/attention_4_decode attention/attention_5_combine attention/attention_6_grouped
    attention/attention_7_hopper attention/attention_8_early attention/attention_defects
    attention_backward/attention_backward_1_naive attention_backward/attention_backward_2_tensor
    attention_backward/attention_backward_3_hopper attention_backward/attention_backward_defects
    attention_backward/attention_backward_hopper_defects
    attention_backward/attention_backward_4_ordered
    attention_backward/attention_backward_ordered_defects
    attention_packed/attention_packed_1_naive attention_packed/attention_packed_2_tensor
    attention_packed/attention_packed_3_hopper attention_packed/attention_packed_defects
    attention_paged/attention_paged_1_naive attention_paged/attention_paged_2_tensor
    attention_paged/attention_paged_3_hopper attention_paged/attention_paged_defects
    attention_e4m3/attention_e4m3_1_naive attention_e4m3/attention_e4m3_2_hopper
    attention_e4m3/attention_e4m3_defects
    softmax/softmax_1_naive softmax/softmax_2_registers softmax/softmax_3_online
    softmax/softmax_4_whole softmax/softmax_6_cluster
    softmax/softmax_planted
    norm/norm_1_naive norm/norm_2_registers norm/norm_3_whole
    row/rope_1_naive row/pair_1_pieces row/gather_1_pieces row/argmax_1_block
    row/argmax_2_whole row/top_k_1_block row/top_k_2_warp row/top_k_3_pass
    checksum/checksum_1_chunks collective/collective_1_direct collective/collective_2_flags
    collective/collective_3_columns collective/collective_4_early collective/collective_5_early
    collective/collective_6_met collective/collective_7_early
    gemm/gemm_14_parts gemm/gemm_15_wide gemm/gemm_planted gemm/gemm_hopper_planted
    grouped/grouped_1_naive grouped/grouped_2_tensor grouped/grouped_3_hopper
    grouped/grouped_4_pair grouped/grouped_planted
    quantised/quant_product_7_bulk quantised/quant_product_8_wgmma quantised/quant_product_planted
    quantised/quant_product_9_split quantised/quant_product_10_columns
    seal/seal_2_product seal/seal_3_early seal/seal_1_chunks
    norm/norm_5_ahead norm/norm_6_early norm/norm_7_cluster
    norm/norm_9_slices norm/norm_10_behind softmax/softmax_8_slices softmax/softmax_9_behind
    softmax/softmax_slices_planted
    measure/read_words
    quantised/linear_1_warp quantised/linear_2_tile quantised/linear_3_tensor
    quantised/linear_4_wide
    quantised/linear_5_bytes quantised/linear_6_early quantised/linear_7_stay
    quantised/linear_8_many
    quantised/rounded_1_warp quantised/rounded_2_early
    decode/best_1_parts decode/best_2_early decode/draw_1_parts
    decode/draw_2_early decode/embed_1_element decode/heads_1_warp
    decode/paged_1_span decode/paged_2_merge decode/heads_2_bytes decode/paged_3_bytes
    decode/paged_4_early decode/paged_5_step
    decode/halves_1_weights decode/halves_2_rows decode/halves_3_heads
""".split()

# The program that shows what they cost; an operation is a file.
KERNELS_BENCH = """
    kernel_bench bench_program bench_json bench_check bench_limits bench_peer device_state
    ggml_times cublas alike gemm_bench grouped_bench quant_bench row_bench attention_bench
    attention_backward_bench attention_packed_bench attention_paged_bench
    attention_e4m3_bench calls_bench checksum_bench
""".split()

# Of them, what tests are linked with.
KERNELS_BENCH_TESTED = [f"$folder/kernels/bench/{source}.o" for source in """
    cublas bench_check bench_limits bench_peer device_state ggml_times
""".split()]

# The program that times variants for problems and keeps the fastest.
KERNELS_TUNE = ["kn_tune"]

# The program that compares collectives with NCCL's.
COLLECTIVES_BENCH = ["collectives_bench", "collectives_processes", "nccl"]

# The program that runs each of them once, for tools that watch a process.
KERNELS_SWEEP = """
    kernel_sweep launched read_back rounds sweep_matrix model_sweep rounded_sweep draw_sweep
    gemm_sweep grouped_sweep attention_sweep combine_sweep packed_sweep pages_sweep e4m3_sweep
    quant_sweep rows_sweep decoder_sweep checksum_sweep seal_sweep halves_sweep collective_sweep
""".split()

# The programs of kernels: each with the folder of its sources.
KERNELS_PROGRAMS = (("bench-kernels", "bench", KERNELS_BENCH),
                    ("bench-collectives", "bench", COLLECTIVES_BENCH),
                    ("kn-tune", "tune", KERNELS_TUNE),
                    ("kernel-sweep", "sweep", KERNELS_SWEEP))

KERNELS_TESTS = """
    kernel_scene attention/attention_scene choose/choose_test choose/tuning_test
    choose/choice_problems choose/choice_dump choose/choice_test choose/plan_test
    choose/kernel_set_test tune/tune_test measure/read_words_test
    operand_test parallel_test number_test inputs_test deviation_test guarded_test swapped_test
    gemm/gemm_oracle_test gemm/gemm_exact_test gemm/gemm_test gemm/gemm_call_test
    gemm/gemm_float_test gemm/gemm_wide_test grouped/grouped_test grouped/grouped_call_test
    kernel_image_test
    quantised/quant_block_test quantised/quantise_test
    quantised/dequantise_test quantised/quant_product_test quantised/quant_product_wgmma_test
    quantised/quant_product_call_test quantised/quant_product_split_test
    attention/attention_test attention/attention_oracle_test attention/attention_exact_test
    attention/attention_call_test attention/attention_rows_test attention/attention_window_test
    attention_backward/attention_backward_test attention_backward/attention_backward_call_test
    attention_packed/packed_scene attention_packed/attention_packed_test
    attention_packed/packed_next_test attention_paged/pages_scene
    attention_paged/attention_paged_test attention_paged/attention_paged_call_test
    attention_paged/attention_paged_trial_test
    attention_e4m3/attention_e4m3_test attention_e4m3/attention_e4m3_trial_test
    softmax/softmax_test norm/norm_test
    row/row_stage_test row/rope_test row/pair_test row/gather_test row/row_special_test
    row/row_variant_test row/top_k_test
    bench/cublas_test bench/bench_check_test bench/bench_limits_test bench/bench_peer_test
    bench/bench_program_test bench/device_state_test bench/ggml_times_test
    quantised/linear_test decode/paged_test decode/paged_bytes_test
    decode/halves_test decode/rounded_test decode/draw_test
    quantised/linear_rounded_test
    checksum/crc32c_test checksum/checksum_test
    seal/chacha_test seal/tagger_test seal/seal_chunks_test seal/seal_product_test
    collective/collective_stage collective/collective_test collective/collective_loss_test
    collective/collective_flags_test collective/gather_columns_test
    collective/collective_ranks collective/collective_join_test
    collective/collective_refuse_test
""".split()
