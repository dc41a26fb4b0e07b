/*
 * Forks, and what children have.
 */
#include "collective/ranks_scene.h"

#include "test/test_device.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOO_FEW = 77 };

static int run_child(struct ranks_child *child, ranks_body *body) {
    struct tol_driver *driver = NULL;
    int count = 0;
    if (tol_driver_open(test_library(), &driver) != TOL_OK) return test_on_gpu() ? TOO_FEW : 3;
    if (tol_device_count(driver, &count) != TOL_OK || count < (int)child->ranks) return TOO_FEW;
    if (tol_context_create(driver, (int)child->rank, &child->context) != TOL_OK ||
        tol_stream_create(child->context, NULL, &child->stream) != TOL_OK) {
        snprintf(child->shared->text, RANKS_TEXT, "no context: %.300s", tol_message());
        return 1;
    }
    const bool ok = body(child);
    kn_collective_destroy(child->collective);
    tol_stream_destroy(child->stream);
    tol_context_destroy(child->context);
    tol_driver_close(driver);
    return ok ? 0 : 1;
}

static pid_t start(struct ranks_child *child, ranks_body *body) {
    const pid_t process = fork();
    cr_assert(process >= 0);
    if (process != 0) return process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    exit(run_child(child, body));
}

struct ranks_shared *ranks_run(unsigned ranks, ranks_body *body, unsigned killed) {
    pid_t process[KN_COLLECTIVE_RANKS_MAX];
    char path[] = "/tmp/tollens_ranks_XXXXXX", socket[64], devices[12];
    bool has_few = false;
    struct ranks_shared *all =
        mmap(NULL, ranks * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(all != MAP_FAILED && mkdtemp(path) != NULL);
    snprintf(socket, sizeof socket, "%s/collective", path);
    snprintf(devices, sizeof devices, "%u", ranks);
    setenv("TOLLENS_SOFT_DEVICES", devices, 1);
    for (unsigned i = 0; i < ranks; i++) {
        struct ranks_child child = {
            .rank = i, .ranks = ranks, .path = socket, .shared = &all[i], .all = all};
        process[i] = start(&child, body);
    }
    for (unsigned i = 0; i < ranks; i++) {
        int ended = 0;
        cr_assert_eq(waitpid(process[i], &ended, 0), process[i]);
        if (WIFEXITED(ended) && WEXITSTATUS(ended) == TOO_FEW) {
            has_few = true;
        } else if (i == killed) {
            cr_assert(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL,
                      "rank %u was not killed: %s", i, all[i].text);
        } else {
            cr_assert(WIFEXITED(ended) && WEXITSTATUS(ended) == 0, "rank %u ended with %#x: %s", i,
                      (unsigned)ended, all[i].text);
        }
    }
    cr_assert(access(socket, F_OK) != 0, "%s is left", socket);
    cr_assert_eq(rmdir(path), 0);
    if (has_few) cr_skip_test("%u devices are needed", ranks);
    return all;
}

void ranks_end(struct ranks_shared *shared, unsigned ranks) {
    munmap(shared, ranks * sizeof *shared);
}

tol_status ranks_join(struct ranks_child *child, enum kn_collective_way way) {
    const struct kn_collective_seat seat = {.path = child->path,
                                            .rank = child->rank,
                                            .ranks = child->ranks,
                                            .bytes = RANKS_WINDOW,
                                            .deadline_ms = 60000};
    return kn_collective_join(child->context, &seat,
                              &(struct kn_collective_options){.way = way, .patience_ms = 60000},
                              &child->collective);
}

struct kn_collective_part ranks_part(const struct ranks_child *child, bool in_place) {
    const struct kn_place whole = kn_collective_memory(child->collective);
    const struct kn_place in = {whole.address, RANKS_HALF};
    const struct kn_place out = {whole.address + RANKS_HALF, RANKS_HALF};
    return (struct kn_collective_part){in, in_place ? in : out, child->stream};
}

tol_status ranks_write(const struct ranks_child *child, CUdeviceptr address, const void *from,
                       size_t bytes) {
    const tol_status status = tol_context_bind(child->context);
    if (status != TOL_OK) return status;
    const struct tol_driver_table *driver = tol_context_functions(child->context);
    /* A copy from pageable memory returns once the bytes are staged, before they have arrived, and
     * the child's stream does not wait for the default one (driver API, "Synchronize behavior"). */
    const CUstream stream = tol_stream_handle(child->stream);
    return driver->cuMemcpyHtoDAsync_v2(address, from, bytes, stream) == CUDA_SUCCESS &&
                   driver->cuStreamSynchronize(stream) == CUDA_SUCCESS
               ? TOL_OK
               : TOL_DRIVER_ERROR;
}

tol_status ranks_read(const struct ranks_child *child, CUdeviceptr address, void *to,
                      size_t bytes) {
    const tol_status status = tol_context_bind(child->context);
    if (status != TOL_OK) return status;
    const struct tol_driver_table *driver = tol_context_functions(child->context);
    return driver->cuMemcpyDtoH_v2(to, address, bytes) == CUDA_SUCCESS ? TOL_OK : TOL_DRIVER_ERROR;
}
