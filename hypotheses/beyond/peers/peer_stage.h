/*
 * Peer stage: all devices of an attack, each with a context, a stream, a transfer and the kernels;
 * areas of memory between guards; and the comparison with what was sent.
 */
#ifndef HYP_PEER_STAGE_H
#define HYP_PEER_STAGE_H

#include "harness/plugin.h"

#include "peer_driver.h"
#include "peer_message.h"
#include "peer_pattern.h"

enum { PEER_DEVICES_MAX = 8, PEER_GUARD = 4096 };

struct peer_device {
    struct tol_context *context;
    struct tol_stream *stream;
    struct tol_transfer *transfer;
    struct tol_module *move_module, *flip_module;
    struct tol_kernel *move, *flip;
    CUcontext handle; /* the driver's, for its own calls */
};

struct peer_stage {
    struct hyp_attack *attack;
    struct peer_driver driver;                /* without the saboteur */
    const struct tol_driver_table *functions; /* with it */
    size_t count;
    struct peer_device devices[PEER_DEVICES_MAX];
    /* [user][owner]: the user's kernels may use the owner's memory, and by atomic operations. */
    bool reaches[PEER_DEVICES_MAX][PEER_DEVICES_MAX],
        has_atomics[PEER_DEVICES_MAX][PEER_DEVICES_MAX];
    bool goes_through_host; /* peer access is denied to the runtime; see peer_stage_begin */
};

/* Prepares all devices and enables peer access between all that have it. false: the attack is not
 * tested, or a violation was recorded. End it in either case.
 * While stage->goes_through_host is true, the driver answers the runtime that no device can access
 * another. */
bool peer_stage_begin(struct hyp_attack *attack, struct peer_stage *stage);
/* The same, with nothing between the runtime and the driver except a saboteur; goes_through_host
 * has no effect. */
bool peer_stage_begin_timed(struct hyp_attack *attack, struct peer_stage *stage);
void peer_stage_end(struct peer_stage *stage);

/* Memory of a device: a guard, bytes, a guard, and up to 16 bytes more for odd offsets. */
struct peer_area {
    struct peer_device *device;
    struct tol_buffer *buffer; /* NULL: a mapping */
    struct peer_mapping mapping;
    CUdeviceptr address; /* of the bytes, after the guard */
    size_t bytes;
};

bool peer_area_create(struct peer_stage *stage, size_t device, size_t bytes,
                      struct peer_area *area);
void peer_area_destroy(struct peer_stage *stage, struct peer_area *area);

/* Fills the whole area, including its guards, with one byte. */
bool peer_area_poison(struct peer_stage *stage, const struct peer_area *area, unsigned char byte);

/* Writes the pattern of seed to `offset` in the area. */
bool peer_area_send(struct peer_stage *stage, const struct peer_area *area, size_t offset,
                    uint64_t seed, size_t bytes);

/* Checks on the host that the pattern of seed is at offset, and that up to a guard's size before
 * and after it every byte is `poison`. way names the trial in the message. */
bool peer_area_check(struct peer_stage *stage, const struct peer_area *area, size_t offset,
                     uint64_t seed, size_t bytes, unsigned char poison, const char *way);

/* Checks that the whole area, including its guards, is the pattern of seed. */
bool peer_area_check_whole(struct peer_stage *stage, const struct peer_area *area, uint64_t seed,
                           const char *way);

/* Whether a code says that the driver or the system does not do `what`. Notes it as not tested. */
bool peer_is_unsupported(struct peer_stage *stage, int result, const char *what);

/* Checks that the other process succeeded and found the pattern. false: it did not, or the driver
 * does not do it, which is noted and no violation. */
bool peer_answer_check(struct peer_stage *stage, const struct peer_answer *answer, const char *way);

#endif
