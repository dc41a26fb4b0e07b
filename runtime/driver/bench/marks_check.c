/*
 * A program for compute-sanitizer: it writes where a pool has a block, between two blocks, or where
 * a block was. Both wrong ones are inside the pool's memory, so a tool finds them only if it was
 * informed of the blocks (core/nvtx_marks.h).
 *
 *     marks-check right | between | freed [LIBRARY]
 */
#include "core/any_driver.h"
#include "tollens/tollens.h"

#include <stdio.h>
#include <string.h>

/* put(address): writes 4 bytes. */
static const char put_text[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                               ".visible .entry put(.param .u64 at) {\n"
                               "  .reg .u64 %a;\n"
                               "  ld.param.u64 %a, [at];\n"
                               "  st.global.u32 [%a], 7;\n"
                               "  ret;\n}\n";

#define TRY(call)                                                                                  \
    if ((call) != TOL_OK) return fprintf(stderr, "marks-check: %s\n", tol_message()), 2

int main(int argc, char **argv) {
    tol_auto_driver struct tol_driver *driver = NULL;
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_module struct tol_module *module = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_pool struct tol_pool *pool = NULL;
    struct tol_kernel *put = NULL;
    struct tol_block first, second;
    if (argc < 2 || (strcmp(argv[1], "right") != 0 && strcmp(argv[1], "between") != 0 &&
                     strcmp(argv[1], "freed") != 0)) {
        fprintf(stderr, "usage: marks-check right | between | freed [LIBRARY]\n");
        return 2;
    }
    TRY(tol_any_driver_open(argc > 2 ? argv[2] : NULL, &driver, NULL));
    TRY(tol_context_create(driver, 0, &context));
    TRY(tol_stream_create(context, NULL, &stream));
    TRY(tol_module_load(context, put_text, sizeof put_text - 1, NULL, &module));
    TRY(tol_module_kernel(module, "put", &put));
    TRY(tol_pool_create(context, NULL, &pool));
    TRY(tol_pool_allocate(pool, 1000, stream, &first));
    TRY(tol_pool_allocate(pool, 1000, stream, &second));
    CUdeviceptr at = tol_pool_address(pool, first);
    if (strcmp(argv[1], "between") == 0) at += 1000 + 12; /* before the next multiple of 256 */
    if (strcmp(argv[1], "freed") == 0) TRY(tol_pool_free(pool, first, stream));
    TRY(tol_launch(stream, put, tol_launch_linear(1, 1), TOL_ARGUMENTS(at)));
    const tol_status ran = tol_stream_synchronize(stream);
    printf("marks-check: %s: %s\n", argv[1], ran == TOL_OK ? "ran" : tol_message());
    return 0;
}
