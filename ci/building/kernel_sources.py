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
    quant/quant_block quant/quant_draw quant/quantise
    quant/dequantise quant/dequantise_planted
    quant/quant_product quant/quant_product_wgmma quant/quant_product_planted
    quant/quant_product_trial
    attention/attention_table
    attention/forward/attention_call attention/forward/attention_launch
    attention/forward/attention_problem attention/forward/attention_maps
    attention/forward/attention_variants attention/forward/attention_operand
    attention/forward/attention_oracle attention/forward/attention_exact
    attention/forward/attention_matrix attention/forward/attention_trial
    attention/backward/attention_backward_call attention/backward/attention_backward_maps
    attention/backward/attention_backward_problem
    attention/backward/attention_backward_variants attention/backward/attention_backward_oracle
    attention/backward/attention_backward_trial attention/packed/attention_packed
    attention/packed/packed_stage attention/packed/attention_packed_trial
    attention/paged/attention_paged_call attention/paged/attention_paged_maps
    attention/paged/attention_paged_problem
    attention/paged/attention_paged_trial attention/e4m3/attention_e4m3
    attention/e4m3/attention_e4m3_oracle attention/e4m3/attention_e4m3_trial
    row/row_place row/row_variant softmax/softmax norm/norm row/rope row/pair row/gather row/argmax
    row/top_k
    gemm/gemm_planted
    checksum/crc32c checksum/checksum seal/chacha seal/tagger seal/seal_chunks
    seal/sealed_product
    collective/collective_create collective/collective_calls collective/collective_ways
    collective/gather_columns
    collective/collective_socket collective/collective_meeting collective/collective_window
    collective/collective_link collective/collective_join
    decoder/weight_format decoder/decoder_check decoder/rounded linear/linear_bytes
    linear/linear linear/linear_pair decoder/best decoder/draw decoder/draw_host
    decoder/paged decoder/paged_step decoder/halves
""".split()

# The .cu files that are put into the library, as PTX and cubins.
KERNEL_IMAGES = """
    basics/vector_add
    gemm/gemm_1_naive gemm/gemm_2_shared gemm/gemm_3_registers gemm/gemm_4_vector
    gemm/gemm_5_tensor gemm/gemm_6_async gemm/gemm_7_tf32 gemm/gemm_8_sum gemm/gemm_9_gathered
    gemm/gemm_10_hopper gemm/gemm_11_pack gemm/gemm_12_narrow gemm/gemm_13_tf32
    quant/dequantise_1_naive quant/dequantise_2_wide quant/dequantise_planted
    quant/quant_product_1_naive quant/quant_product_2_rows quant/quant_product_3_integers
    quant/quant_product_4_tensor quant/quant_product_5_staged quant/quant_product_6_early
    attention/forward/attention_1_naive attention/forward/attention_2_tiled
    attention/forward/attention_3_tensor attention/forward/attention_4_decode
    attention/forward/attention_5_combine attention/forward/attention_6_grouped
    attention/forward/attention_7_hopper attention/forward/attention_8_early
    attention/forward/attention_defects attention/backward/attention_backward_1_naive
    attention/backward/attention_backward_2_tensor
    attention/backward/attention_backward_3_hopper
    attention/backward/attention_backward_defects
    attention/backward/attention_backward_hopper_defects
    attention/backward/attention_backward_4_ordered
    attention/backward/attention_backward_ordered_defects
    attention/packed/attention_packed_1_naive attention/packed/attention_packed_2_tensor
    attention/packed/attention_packed_3_hopper attention/packed/attention_packed_defects
    attention/paged/attention_paged_1_naive attention/paged/attention_paged_2_tensor
    attention/paged/attention_paged_3_hopper attention/paged/attention_paged_defects
    attention/e4m3/attention_e4m3_1_naive attention/e4m3/attention_e4m3_2_hopper
    attention/e4m3/attention_e4m3_defects
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
    quant/quant_product_7_bulk quant/quant_product_8_wgmma quant/quant_product_planted
    quant/quant_product_9_split quant/quant_product_10_columns
    seal/seal_2_product seal/seal_3_early seal/seal_1_chunks
    norm/norm_5_ahead norm/norm_6_early norm/norm_7_cluster
    norm/norm_9_slices norm/norm_10_behind softmax/softmax_8_slices softmax/softmax_9_behind
    softmax/softmax_slices_planted
    measure/read_words
    linear/linear_1_warp linear/linear_2_tile linear/linear_3_tensor linear/linear_4_wide
    linear/linear_5_bytes linear/linear_6_early linear/linear_7_stay linear/linear_8_many
    decoder/rounded_1_warp decoder/rounded_2_early
    decoder/best_1_parts decoder/best_2_early decoder/draw_1_parts
    decoder/draw_2_early decoder/embed_1_element decoder/heads_1_warp
    decoder/paged_1_span decoder/paged_2_merge decoder/heads_2_bytes decoder/paged_3_bytes
    decoder/paged_4_early decoder/paged_5_step
    decoder/halves_1_weights decoder/halves_2_rows decoder/halves_3_heads
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
    kernel_scene attention/forward/attention_scene choose/choose_test choose/tuning_test
    choose/choice_problems choose/choice_dump choose/choice_test choose/plan_test
    choose/kernel_set_test tune/tune_test measure/read_words_test
    operand_test parallel_test number_test inputs_test deviation_test guarded_test swapped_test
    gemm/gemm_oracle_test gemm/gemm_exact_test gemm/gemm_test gemm/gemm_call_test
    gemm/gemm_float_test gemm/gemm_wide_test grouped/grouped_test grouped/grouped_call_test
    kernel_image_test
    quant/quant_block_test quant/quantise_test
    quant/dequantise_test quant/quant_product_test quant/quant_product_wgmma_test
    quant/quant_product_call_test quant/quant_product_split_test
    attention/forward/attention_test attention/forward/attention_oracle_test
    attention/forward/attention_exact_test attention/forward/attention_call_test
    attention/forward/attention_rows_test attention/forward/attention_window_test
    attention/backward/attention_backward_test attention/backward/attention_backward_call_test
    attention/packed/sequences_scene attention/packed/packed_scene
    attention/packed/attention_packed_test
    attention/packed/packed_next_test attention/paged/pages_scene
    attention/paged/attention_paged_test attention/paged/attention_paged_call_test
    attention/paged/attention_paged_trial_test attention/e4m3/attention_e4m3_test
    attention/e4m3/attention_e4m3_trial_test
    softmax/softmax_test norm/norm_test
    row/row_stage_test row/rope_test row/pair_test row/gather_test row/row_special_test
    row/row_variant_test row/top_k_test
    bench/cublas_test bench/bench_check_test bench/bench_limits_test bench/bench_peer_test
    bench/bench_program_test bench/device_state_test bench/ggml_times_test
    linear/linear_test decoder/paged_test decoder/paged_bytes_test
    decoder/halves_test decoder/rounded_test decoder/draw_test
    linear/linear_rounded_test
    checksum/crc32c_test checksum/checksum_test
    seal/chacha_test seal/tagger_test seal/seal_chunks_test seal/seal_product_test
    collective/collective_stage collective/collective_test collective/collective_loss_test
    collective/collective_flags_test collective/gather_columns_test
    collective/collective_ranks collective/collective_join_test
    collective/collective_refuse_test
""".split()
