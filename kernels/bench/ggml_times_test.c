/*
 * What is read of a file such as test-backend-ops writes, with times that are made up.
 */
#include "bench/ggml_times.h"

#include "test/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct kn_ggml_times times;

static tol_status read_text(const char *text) {
    char name[] = "/tmp/ggml_times.XXXXXX";
    const int file = mkstemp(name);
    cr_assert(file >= 0);
    cr_assert_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    const tol_status status = kn_ggml_times_read(name, &times);
    unlink(name);
    return status;
}

#define SAME ",bs=[1,1],nr=[1,1],per=[0,1,2,3]"

Test(ggml_times, products_are_found_by_type_and_sizes) {
    MUST(read_text(
        "ggml_cuda_init: found 1 CUDA devices:\n"
        "Testing 2 devices\n\n"
        "Backend 1/2: CUDA0\n"
        "  Device description: NVIDIA H100 80GB HBM3\n"
        "  MUL_MAT(type_a=q4_K,type_b=f32,m=4096,n=1,k=14336" SAME "):      "
        "     22152 runs -    45.22 us/run - 117.44 MFLOP/run - \033[1;34m  2.60 TFLOPS\033[0m\n"
        "  MUL_MAT(type_a=q4_K,type_b=f32,m=4096,n=512,k=14336" SAME ",k_v=0,o=1): "
        "\033[1;32m 1491 runs\033[0m -   671.02 us/run -  60.13 GFLOP/run -  89.61 TFLOPS\n"
        "  MUL_MAT(type_a=q8_0,type_b=f32,m=4096,n=1,k=14336" SAME "): not supported\n"
        "  MUL_MAT(type_a=q6_K,type_b=f32,m=4096,n=1,k=14336" SAME "): 7668 runs - 1e3 us/run -\n"
        "  Backend CUDA0: \033[1;32mOK\033[0m\n"));
    cr_assert_eq(times.count, 3);
    cr_assert_eq(kn_ggml_times_us(&times, "q4_k", 4096, 1, 14336), 45.22);
    cr_assert_eq(kn_ggml_times_us(&times, "q4_k", 4096, 512, 14336), 671.02);
    cr_assert_eq(kn_ggml_times_us(&times, "q6_k", 4096, 1, 14336), 1000);
    cr_assert_eq(kn_ggml_times_us(&times, "q8_0", 4096, 1, 14336), 0);
    cr_assert_eq(kn_ggml_times_us(&times, "q4_k", 4096, 2, 14336), 0);
    cr_assert_eq(kn_ggml_times_us(&times, "q4_k", 4097, 1, 14336), 0);
    cr_assert_eq(kn_ggml_times_us(&times, "q4_k", 4096, 1, 14337), 0);
}

Test(ggml_times, other_backends_batches_types_and_operations_are_not_taken) {
    MUST(read_text(
        "Backend 1/3: Vulkan0\n"
        "  MUL_MAT(type_a=q4_K,type_b=f32,m=4096,n=1,k=14336" SAME "): 9 runs - 1.00 us/run - 1\n"
        "Backend 2/3: CUDA0\n"
        "  MUL_MAT(type_a=q4_K,type_b=f16,m=4096,n=1,k=14336" SAME "): 9 runs - 2.00 us/run - 1\n"
        "  MUL_MAT(type_a=q4_K,type_b=f32,m=4096,n=1,k=14336,bs=[4,1],nr=[1,1],per=[0,1,2,3]): "
        "9 runs - 3.00 us/run - 1\n"
        "  MUL_MAT_ID(type_a=q4_K,type_b=f32,n_mats=4,n_used=2,b=0,m=4096,n=1,k=14336): 9 runs - "
        "4.00 us/run - 1\n"
        "  MUL_MAT(type_a=q4_K,type_b=f32,m=4096,n=1,k=14336" SAME "): 9 runs - 0.00 us/run - 1\n"
        "  MUL_MAT(type_a=q4_K,type_b=f32,m=4096,n=1,k=14336" SAME "): 9 runs - 5.00 us/run - 1\n"
        "  MUL_MAT(type_a=q4_K,type_b=f32,m=4096,n=1,k=14336" SAME "): 9 runs - 6.00 us/run - 1\n"
        "Backend 3/3: CPU\n"
        "  MUL_MAT(type_a=q8_0,type_b=f32,m=4096,n=1,k=14336" SAME
        "): 9 runs - 7.00 us/run - 1\n"));
    cr_assert_eq(kn_ggml_times_us(&times, "q4_k", 4096, 1, 14336), 5);
    cr_assert_eq(kn_ggml_times_us(&times, "q8_0", 4096, 1, 14336), 0);
}

Test(ggml_times, a_file_without_any_is_refused) {
    MUST_FAIL(kn_ggml_times_read("/nowhere/perf.txt", &times), TOL_UNREADABLE,
              "/nowhere/perf.txt: No such file");
    MUST_FAIL(read_text("Backend 1/1: CPU\n"), TOL_INVALID_FILE, "has no product");
    MUST_FAIL(read_text(""), TOL_INVALID_FILE, "has no product");
    MUST_FAIL(read_text("\033[1;32m\n\033\nMUL_MAT(type_a=q4_K\n"), TOL_INVALID_FILE,
              "has no product");
}
