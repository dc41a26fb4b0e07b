/*
 * Example 2, vector add: a kernel is loaded, launched and waited for, and its sums are read back.
 *
 * The kernel is PTX, what nvcc makes of CUDA C (nvcc -ptx); a driver compiles it for its device.
 * The arguments are passed with their own C types, and a wrong number of them, or a size that the
 * kernel does not have, is refused where the driver can tell.
 */
#include <stdio.h>
#include <tollens.h>

#define TRY(call)                                                                                  \
    if ((call) != TOL_OK) return fprintf(stderr, "%s\n", tol_message()), 1

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum,\n"
                          "                    .param .u32 n) {\n"
                          "  .reg .b32 %i<5>; .reg .f32 %f<3>; .reg .b64 %p<7>; .reg .pred %out;\n"
                          "  mov.u32 %i0, %ctaid.x;  mov.u32 %i1, %ntid.x;  mov.u32 %i2, %tid.x;\n"
                          "  mad.lo.u32 %i3, %i0, %i1, %i2;\n"
                          "  ld.param.u32 %i4, [n];\n"
                          "  setp.ge.u32 %out, %i3, %i4;\n"
                          "  @%out ret;\n"
                          "  ld.param.u64 %p0, [a];  mad.wide.u32 %p3, %i3, 4, %p0;\n"
                          "  ld.param.u64 %p1, [b];  mad.wide.u32 %p4, %i3, 4, %p1;\n"
                          "  ld.param.u64 %p2, [sum];  mad.wide.u32 %p5, %i3, 4, %p2;\n"
                          "  ld.global.f32 %f0, [%p3];  ld.global.f32 %f1, [%p4];\n"
                          "  add.f32 %f2, %f0, %f1;\n"
                          "  st.global.f32 [%p5], %f2;\n"
                          "  ret;\n}\n";

enum { N = 1000 };

int main(void) {
    static float a[N], b[N], sum[N];
    tol_auto_driver struct tol_driver *driver = NULL;
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_module struct tol_module *module = NULL;
    tol_auto_buffer struct tol_buffer *a_there = NULL;
    tol_auto_buffer struct tol_buffer *b_there = NULL;
    tol_auto_buffer struct tol_buffer *sum_there = NULL;
    struct tol_kernel *add = NULL; /* belongs to its module */
    int wrong = 0;
    for (int i = 0; i < N; i++) a[i] = (float)i, b[i] = (float)(2 * i);
    TRY(tol_driver_open(NULL, &driver));
    TRY(tol_context_create(driver, 0, &context));
    TRY(tol_stream_create(context, NULL, &stream));
    TRY(tol_module_load(context, ptx, sizeof ptx - 1, NULL, &module));
    TRY(tol_module_kernel(module, "add", &add));
    TRY(tol_buffer_create(context, N, sizeof a[0], &a_there));
    TRY(tol_buffer_create(context, N, sizeof b[0], &b_there));
    TRY(tol_buffer_create(context, N, sizeof sum[0], &sum_there));
    TRY(tol_buffer_write(a_there, a, sizeof a));
    TRY(tol_buffer_write(b_there, b, sizeof b));
    /* At least N threads in blocks of 256; the kernel turns back those that are too many. */
    TRY(tol_launch(stream, add, tol_launch_linear(N, 256),
                   TOL_ARGUMENTS(tol_buffer_address(a_there), tol_buffer_address(b_there),
                                 tol_buffer_address(sum_there), (unsigned)N)));
    TRY(tol_stream_synchronize(stream));
    TRY(tol_buffer_read(sum_there, sum, sizeof sum));
    for (int i = 0; i < N; i++) wrong += sum[i] != (float)(3 * i);
    printf("%d sums, %d of them wrong; the last is %g + %g = %g\n", N, wrong, (double)a[N - 1],
           (double)b[N - 1], (double)sum[N - 1]);
    return wrong > 0;
}
