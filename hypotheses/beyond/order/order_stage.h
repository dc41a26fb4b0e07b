/*
 * Order stage: blocks of numbers that say which step wrote them, and a kernel that checks a block
 * and writes another. A step is known by its stamp, which no other step of the attack has; each
 * number of a block depends on the stamp and on its position.
 */
#ifndef HYP_ORDER_STAGE_H
#define HYP_ORDER_STAGE_H

#include "order_faults.h"

enum { ORDER_WORDS = 128, ORDER_BYTES = 4 * ORDER_WORDS, ORDER_DEADLINE_MS = 10000 };

struct order_stage {
    struct hyp_attack *attack;
    struct tol_module *module;
    struct tol_kernel *pass;
    struct tol_buffer *findings; /* of the kernels: how many numbers were wrong, and the first */
    uint32_t last_stamp;
};

/* One launch of the kernel: it compares `from`, then takes its time, compares again, and writes. */
struct order_pass {
    CUdeviceptr from; /* 0: it compares nothing */
    uint32_t expected;
    CUdeviceptr to; /* 0: it writes nothing */
    uint32_t written;
    bool is_slow; /* takes long enough that work which does not wait for it is too early */
};

/* false: a violation was recorded. End it in either case. */
bool order_stage_begin(struct hyp_attack *attack, struct order_stage *stage);

/* Waits for all work on the device, and releases what the stage has. */
void order_stage_end(struct order_stage *stage);

/* The number at a position of a block that the step with this stamp wrote. */
static inline uint32_t order_word(uint32_t stamp, uint32_t index) {
    return stamp * 2246822519u + index * 2654435761u + 1;
}

/* Writes a block, and returns the first position that differs from it, or ORDER_WORDS. */
void order_write(uint32_t stamp, volatile uint32_t *words);
unsigned order_difference(uint32_t stamp, const volatile uint32_t *words);

/* A stamp that was not used before. */
uint32_t order_stamp(struct order_stage *stage);

/* The shape and the arguments of a launch; the second is valid while the first is. */
struct order_call {
    CUdeviceptr from, to, findings;
    uint32_t expected, written;
    uint64_t slow_ns;
    void *values[6];
};
struct tol_launch_shape order_shape(void);
struct tol_arguments order_arguments(const struct order_stage *stage, struct order_pass pass,
                                     struct order_call *call);

/* Queues a launch. Any thread; the caller looks at the status. */
tol_status order_launch(const struct order_stage *stage, struct tol_stream *stream,
                        struct order_pass pass);

/* Waits until the device is idle by the driver's own call, past the runtime and its faults. */
bool order_stage_settle(struct order_stage *stage);

/* The device is idle: whether no kernel found a wrong number since the last call. Counts a sample.
 */
bool order_stage_judge(struct order_stage *stage, const char *what);

#endif
