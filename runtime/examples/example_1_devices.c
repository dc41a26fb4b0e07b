/*
 * Example 1, device query: which driver and which devices there are, and what they can do.
 *
 * Opening a driver needs no CUDA toolkit: it is found when the program runs. Every call gives a
 * status, and tol_message() has the words for the last failure of this thread.
 */
#include <stdio.h>
#include <tollens.h>

#define TRY(call)                                                                                  \
    if ((call) != TOL_OK) return fprintf(stderr, "%s\n", tol_message()), 1

int main(void) {
    tol_auto_driver struct tol_driver *driver = NULL; /* gives itself back at the end of main */
    int count = 0;
    TRY(tol_driver_open(NULL, &driver)); /* $TOLLENS_LIBCUDA, or the platform's libcuda */
    TRY(tol_device_count(driver, &count));
    for (int i = 0; i < count; i++) {
        struct tol_device device;
        tol_auto_context struct tol_context *context = NULL;
        size_t free_bytes = 0, bytes = 0;
        TRY(tol_device_read(driver, i, &device));
        printf("device %d: %s, compute capability %d.%d, %d multiprocessors of %d threads\n", i,
               device.name, device.compute_capability / 10, device.compute_capability % 10,
               device.multiprocessors, device.multiprocessor_threads_max);
        TRY(tol_context_create(driver, i, &context));
        TRY(tol_context_memory(context, &free_bytes, &bytes));
        printf("  memory: %.1f of %.1f GiB are free; %d KiB shared by a block, %d with leave\n",
               (double)free_bytes / (1 << 30), (double)bytes / (1 << 30),
               device.shared_bytes_per_block >> 10, device.shared_bytes_per_block_optin >> 10);
        printf("  has virtual memory management: %s; memory pools: %s; clusters: %s\n",
               device.virtual_memory_management ? "yes" : "no", device.memory_pools ? "yes" : "no",
               device.cluster_launch ? "yes" : "no");
    }
    return count > 0 ? 0 : 1;
}
