/*
 * A lane is an ordered pair of devices with its own buffers, stream and transfers, so concurrent
 * lanes share only the links. Each lane has a thread.
 */
#include "bench/peer_speed.h"

#include "core/monotonic.h"
#include "tollens/memory.h"
#include "tollens/stream.h"
#include "tollens/transfer.h"

#include <pthread.h>
#include <stdlib.h>

enum { LANES_MAX = PEER_SPEED_DEVICES * PEER_SPEED_DEVICES, TURNS_MAX = 1024 };

struct lane {
    const struct tol_driver_table *raw;
    struct tol_context *from_context, *to_context;
    CUcontext from_handle, to_handle;
    struct tol_buffer *source, *target;
    struct tol_transfer *from, *to;
    struct tol_stream *stream;
    size_t from_device, to_device, bytes;
    unsigned copies;
    bool is_raw;
    pthread_barrier_t *barrier; /* NULL: the lane runs alone */
    double seconds;
    tol_status status;
};

const char *peer_load_name(enum peer_load load) {
    static const char *const names[PEER_LOADS] = {"one way", "both ways", "all pairs"};
    return names[load];
}

/* ---- lanes ---- */

static tol_status handle_of(struct tol_context *context, CUcontext *handle) {
    const tol_status status = tol_context_bind(context);
    if (status != TOL_OK) return status;
    return tol_context_functions(context)->cuCtxGetCurrent(handle) == CUDA_SUCCESS
               ? TOL_OK
               : TOL_DRIVER_ERROR;
}

static tol_status begin_lane(struct lane *lane, struct tol_context *const *contexts, size_t from,
                             size_t to, size_t bytes) {
    *lane = (struct lane){.from_context = contexts[from],
                          .to_context = contexts[to],
                          .from_device = from,
                          .to_device = to,
                          .bytes = bytes};
    tol_status status = tol_buffer_create(lane->from_context, bytes, 1, &lane->source);
    if (status == TOL_OK) status = tol_buffer_create(lane->to_context, bytes, 1, &lane->target);
    if (status == TOL_OK) status = tol_buffer_fill_at(lane->source, 0, 0x55, 1, bytes);
    if (status == TOL_OK) status = tol_transfer_create(lane->from_context, NULL, &lane->from);
    if (status == TOL_OK) status = tol_transfer_create(lane->to_context, NULL, &lane->to);
    if (status == TOL_OK) status = tol_stream_create(lane->to_context, NULL, &lane->stream);
    if (status == TOL_OK) status = handle_of(lane->from_context, &lane->from_handle);
    if (status == TOL_OK) status = handle_of(lane->to_context, &lane->to_handle);
    return status;
}

static void end_lane(struct lane *lane) {
    tol_stream_destroy(lane->stream);
    tol_transfer_destroy(lane->to);
    tol_transfer_destroy(lane->from);
    tol_buffer_destroy(lane->target);
    tol_buffer_destroy(lane->source);
}

static tol_status copy_raw(struct lane *lane) {
    const struct tol_driver_table *driver = lane->raw;
    const CUstream stream = tol_stream_handle(lane->stream);
    CUresult result = driver->cuMemcpyPeerAsync(tol_buffer_address(lane->target), lane->to_handle,
                                                tol_buffer_address(lane->source), lane->from_handle,
                                                lane->bytes, stream);
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(stream);
    return result == CUDA_SUCCESS ? TOL_OK : TOL_DRIVER_ERROR;
}

static tol_status peer_speed_copy_once(struct lane *lane) {
    if (lane->is_raw) return copy_raw(lane);
    return tol_transfer_peer(lane->to, tol_place_of_buffer(lane->target), 0, lane->from,
                             tol_place_of_buffer(lane->source), 0, lane->bytes);
}

static void *peer_speed_run_lane(void *user) {
    struct lane *lane = user;
    lane->status = tol_context_bind(lane->to_context);
    if (lane->barrier != NULL) pthread_barrier_wait(lane->barrier);
    const uint64_t begin_ns = tol_now_ns();
    for (unsigned i = 0; i < lane->copies && lane->status == TOL_OK; i++) {
        lane->status = peer_speed_copy_once(lane);
    }
    lane->seconds = (double)(tol_now_ns() - begin_ns) * 1e-9;
    return NULL;
}

/* Runs lanes at once, each in a thread. */
static tol_status run_lanes(struct lane *const *lanes, size_t count, bool is_raw, unsigned copies) {
    pthread_t threads[LANES_MAX];
    pthread_barrier_t barrier;
    size_t begun = 0;
    tol_status status = TOL_OK;
    for (size_t i = 0; i < count; i++) {
        lanes[i]->is_raw = is_raw;
        lanes[i]->copies = copies;
        lanes[i]->barrier = count > 1 ? &barrier : NULL;
    }
    if (count == 1) {
        peer_speed_run_lane(lanes[0]);
        return lanes[0]->status;
    }
    if (pthread_barrier_init(&barrier, NULL, (unsigned)count) != 0) return TOL_OUT_OF_HOST_MEMORY;
    while (begun < count &&
           pthread_create(&threads[begun], NULL, peer_speed_run_lane, lanes[begun]) == 0) {
        begun++;
    }
    if (begun < count) abort(); /* the others wait at the barrier for good */
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        if (lanes[i]->status != TOL_OK) status = lanes[i]->status;
    }
    pthread_barrier_destroy(&barrier);
    return status;
}

/* ---- turns ---- */

static int peer_speed_compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double peer_speed_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, peer_speed_compare);
    return values[count / 2];
}

static double peer_speed_last_of(struct lane *const *group, size_t count) {
    double last = 0;
    for (size_t i = 0; i < count; i++) {
        if (group[i]->seconds > last) last = group[i]->seconds;
    }
    return last;
}

/* Medians of the seconds of each lane of a group for its copies, [lane][side], raw first; after
 * the lanes, those until the last lane is done. */
static tol_status peer_speed_take_turns(struct lane *const *group, size_t count, unsigned turns,
                                        unsigned copies, double (*seconds)[2]) {
    double *taken = calloc((count + 1) * 2 * turns, sizeof *taken); /* [lane][side][turn] */
    tol_status status = taken != NULL ? TOL_OK : TOL_OUT_OF_HOST_MEMORY;
    for (unsigned turn = 0; turn < turns + 1 && status == TOL_OK; turn++) {
        for (unsigned i = 0; i < 2 && status == TOL_OK; i++) {
            const unsigned side = (turn + i) % 2;
            status = run_lanes(group, count, side == 0, copies);
            for (size_t lane = 0; turn > 0 && lane <= count; lane++) {
                taken[(lane * 2 + side) * turns + turn - 1] =
                    lane < count ? group[lane]->seconds : peer_speed_last_of(group, count);
            }
        }
    }
    for (size_t i = 0; i < (count + 1) * 2 && status == TOL_OK; i++) {
        seconds[i / 2][i % 2] = peer_speed_median(taken + i * turns, turns);
    }
    free(taken);
    return status;
}

static void peer_speed_keep(struct peer_matrix *matrix, const struct lane *lane, double raw,
                            double runtime) {
    matrix->raw[lane->from_device][lane->to_device] += raw;
    matrix->runtime[lane->from_device][lane->to_device] += runtime;
}

/* The lanes that run at once with the first of them. */
static size_t peer_speed_group_of(struct lane *lanes, size_t count, size_t first,
                                  enum peer_load load, struct lane **group) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_reverse = lanes[i].from_device == lanes[first].to_device &&
                                lanes[i].to_device == lanes[first].from_device;
        if (i == first || load == PEER_ALL_PAIRS || (load == PEER_BOTH_WAYS && is_reverse)) {
            group[found++] = &lanes[i];
        }
    }
    return found;
}

static tol_status peer_speed_measure(struct lane *lanes, size_t count, enum peer_load load,
                                     unsigned turns, unsigned copies, struct peer_matrix *matrix) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        struct lane *group[LANES_MAX];
        double seconds[LANES_MAX + 1][2], raw = 0, runtime = 0;
        const size_t in_group = peer_speed_group_of(lanes, count, i, load, group);
        if (load == PEER_BOTH_WAYS && lanes[i].from_device > lanes[i].to_device) continue;
        status = peer_speed_take_turns(group, in_group, turns, copies, seconds);
        const double bytes = (double)lanes[i].bytes * copies * 1e-9;
        for (size_t j = 0; j < in_group && status == TOL_OK; j++) {
            raw += bytes / seconds[j][0];
            runtime += bytes / seconds[j][1];
            if (load == PEER_ALL_PAIRS) {
                peer_speed_keep(matrix, group[j], bytes / seconds[j][0], bytes / seconds[j][1]);
            }
        }
        if (in_group > 2 && status == TOL_OK) {
            matrix->raw_all = bytes * (double)in_group / seconds[in_group][0];
            matrix->runtime_all = bytes * (double)in_group / seconds[in_group][1];
        }
        if (load == PEER_ALL_PAIRS) break;
        for (size_t j = 0; j < in_group && status == TOL_OK; j++) {
            peer_speed_keep(matrix, group[j], raw, runtime);
        }
    }
    return status;
}

static tol_status begin_lanes(struct tol_context *const *contexts, size_t devices, size_t bytes,
                              struct lane *lanes, size_t *count) {
    tol_status status = TOL_OK;
    *count = 0;
    for (size_t i = 0; i < devices * devices && status == TOL_OK; i++) {
        if (i / devices == i % devices) continue;
        status = begin_lane(&lanes[(*count)++], contexts, i / devices, i % devices, bytes);
    }
    return status;
}

tol_status peer_speed_bandwidth(struct tol_context *const *contexts, size_t count,
                                const struct tol_driver_table *raw, enum peer_load load,
                                size_t bytes, unsigned turns, unsigned copies,
                                struct peer_matrix *matrix) {
    static struct lane lanes[LANES_MAX];
    size_t lane_count = 0;
    *matrix = (struct peer_matrix){.raw = {{0}}};
    if (turns > TURNS_MAX) turns = TURNS_MAX;
    tol_status status = begin_lanes(contexts, count, bytes, lanes, &lane_count);
    for (size_t i = 0; i < lane_count; i++) lanes[i].raw = raw;
    if (status == TOL_OK)
        status = peer_speed_measure(lanes, lane_count, load, turns, copies, matrix);
    for (size_t i = 0; i < lane_count; i++) end_lane(&lanes[i]);
    return status;
}

tol_status peer_speed_latency(struct tol_context *const *contexts, size_t count,
                              const struct tol_driver_table *raw, size_t bytes, unsigned calls,
                              struct peer_matrix *matrix) {
    const tol_status status =
        peer_speed_bandwidth(contexts, count, raw, PEER_ONE_WAY, bytes, calls, 1, matrix);
    for (size_t i = 0; i < count * count && status == TOL_OK; i++) {
        double *driver = &matrix->raw[i / count][i % count];
        double *runtime = &matrix->runtime[i / count][i % count];
        if (*driver > 0) *driver = (double)bytes * 1e-3 / *driver;
        if (*runtime > 0) *runtime = (double)bytes * 1e-3 / *runtime;
    }
    return status;
}

unsigned peer_speed_turns(enum peer_load load, size_t count, unsigned turns) {
    return load == PEER_ALL_PAIRS && count > 2 ? 4 * turns : turns;
}

double peer_speed_least(const struct peer_matrix *matrix, size_t count, bool is_less_better) {
    double least = 0;
    if (matrix->raw_all > 0) return matrix->runtime_all / matrix->raw_all;
    for (size_t i = 0; i < count * count; i++) {
        const double raw = matrix->raw[i / count][i % count];
        const double runtime = matrix->runtime[i / count][i % count];
        if (!(raw > 0) || !(runtime > 0)) continue;
        const double ratio = is_less_better ? raw / runtime : runtime / raw;
        if (!(least > 0) || ratio < least) least = ratio;
    }
    return least;
}
