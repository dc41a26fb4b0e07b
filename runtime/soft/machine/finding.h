/*
 * Findings: the mistakes of a launch. A failure ends the launch; a finding of a check does not,
 * unless findings are fatal.
 */
#ifndef SOFT_FINDING_H
#define SOFT_FINDING_H

#include "machine_state.h"

/* Ends the launch with a failure; the first one counts. Always returns NULL, for handlers. */
const struct soft_instruction *
soft_launch_fail(struct soft_warp *warp, const struct soft_instruction *instruction, int result,
                 uint32_t lanes, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Fills in the thread and the place of a report. */
void soft_launch_describe(struct soft_warp *warp, const struct soft_instruction *instruction,
                          uint32_t lanes, struct soft_report *report);

/* What a check has found. */
struct soft_finding {
    const char *kind; /* "data race"; static, because it is compared by address */
    uint32_t lanes;
    uint64_t address;
    bool minor;                            /* it never ends the launch */
    const struct soft_report_place *other; /* the other access of two, or NULL */
    const struct soft_instruction *beside; /* its instruction */
};

/* Reports a finding, once per kind and instruction, or pair of instructions, of a launch; if
 * findings are fatal, ends the launch with it. */
void soft_launch_find(struct soft_warp *warp, const struct soft_instruction *instruction,
                      const struct soft_finding *finding, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Whether a launch has reported an instruction for this. */
bool soft_launch_is_noted(struct soft_launch *launch, const struct soft_instruction *instruction,
                          const char *kind);

/* The same for a finding at one place. */
void soft_launch_note(struct soft_warp *warp, const struct soft_instruction *instruction,
                      const char *kind, uint32_t lanes, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

#endif
