/*
 * One launch of the kernel sm_clock, which is resolved once.
 */
#include "gpu_clock.h"

double hyp_gpu_clock_mhz(struct hyp_attack *attack, uint64_t wait_ns) {
    static struct tol_kernel *kernel; /* never destroyed: the attack is this process */
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    uint64_t counted[2] = {0, 0}; /* cycles, nanoseconds */
    if (kernel == NULL) kernel = hyp_attack_kernel(attack, "sm_clock");
    if (kernel == NULL || !HYP_OK(attack, tol_stream_create(attack->context, NULL, &stream)) ||
        !HYP_OK(attack, tol_buffer_create(attack->context, 2, sizeof counted[0], &buffer))) {
        return 0;
    }
    CUdeviceptr address = tol_buffer_address(buffer);
    unsigned long long wait = wait_ns;
    if (!HYP_OK(attack, tol_launch(stream, kernel, tol_launch_linear(1, 1),
                                   TOL_ARGUMENTS(address, wait))) ||
        !HYP_OK(attack, tol_stream_synchronize(stream)) ||
        !HYP_OK(attack, tol_buffer_read(buffer, counted, sizeof counted)) ||
        !HYP_CHECK(attack, counted[0] > 0 && counted[1] >= wait_ns,
                   "sm_clock counted %llu cycles in %llu ns", (unsigned long long)counted[0],
                   (unsigned long long)counted[1])) {
        return 0;
    }
    return (double)counted[0] * 1e3 / (double)counted[1];
}
