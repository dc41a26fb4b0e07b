/*
 * Taint list: the slots of a warp whose values come from loads of memory that was never written.
 */
#ifndef SOFT_TAINT_LIST_H
#define SOFT_TAINT_LIST_H

#include "machine_state.h"

/* A load by one lane. */
struct soft_tainted_load {
    const struct soft_instruction *instruction;
    uint64_t address;
    unsigned bytes;
    bool is_partial; /* some of the bytes were written */
    bool is_global;
};

enum { SOFT_TAINT_LOADS = 16, SOFT_TAINT_SLOTS = 128 };

struct soft_taint_load {
    struct soft_tainted_load load; /* of the first lane */
    const struct soft_frame *frame;
    bool is_told;
};

struct soft_taint_slot {
    const struct soft_frame *frame;
    uint32_t slot, lanes;
    unsigned load;
};

struct soft_taint {
    bool runs; /* in soft_taint_run */
    unsigned load_count, slot_count;
    struct soft_taint_load loads[SOFT_TAINT_LOADS];
    struct soft_taint_slot slots[SOFT_TAINT_SLOTS];
};

/* The entry of a slot, or NULL. */
struct soft_taint_slot *soft_taint_find(struct soft_taint *taint, const struct soft_frame *frame,
                                        uint32_t slot);

/* Adds lanes of a slot, whose value comes from a load of the list. false: the list is full. */
bool soft_taint_put(struct soft_taint *taint, const struct soft_frame *frame, uint32_t slot,
                    uint32_t lanes, unsigned load);

/* Lanes of a slot have a new value. */
void soft_taint_take(struct soft_taint *taint, const struct soft_frame *frame, uint32_t slot,
                     uint32_t lanes);

/* A frame ends; all do, when its warp is used again; the list is freed. */
void soft_taint_forget(struct soft_warp *warp, const struct soft_frame *frame);
void soft_taint_clear(struct soft_warp *warp);
void soft_taint_drop(struct soft_warp *warp);

#endif
