/*
 * Launcher: the same launch made in two ways, for those who compare them: by the driver's own call,
 * as a C program makes it, and through the runtime.
 *
 * Both sides launch one kernel of one thread on one stream. The kernel counts, and every argument
 * enters the count, so a launch that was timed and not made, or made with other arguments, is
 * found out when the comparison has ended.
 */
#ifndef HYP_LAUNCHER_H
#define HYP_LAUNCHER_H

#include "harness/attack.h"

/* What a third way to launch looks like: launches, on a CUstream, of a kernel that counts at an
 * address. Gives 0 or an error of its own. */
typedef int (*hyp_launch_other)(int arguments, unsigned long long count, void *stream,
                                unsigned calls, int synchronizes);

struct hyp_launcher {
    struct hyp_attack *attack;
    unsigned arguments;     /* 1, 4 or 16 */
    bool synchronizes;      /* after every launch, and not once behind each batch */
    hyp_launch_other other; /* the baseline in the driver's place; NULL: the driver */
    struct tol_stream *stream;
    struct tol_kernel *kernel;
    struct tol_buffer *count;
    CUfunction function;
    CUstream handle;
    CUdeviceptr address;
    uint64_t made;
    double extra_share, extra_owed; /* of the saboteur launch_extra_percent */
};

/* Makes ready; ends with hyp_launcher_end in any case. false: a violation was noted. */
bool hyp_launcher_begin(struct hyp_attack *attack, unsigned arguments, bool synchronizes,
                        struct hyp_launcher *launcher);

/* For hyp_pair.batch; user is the launcher. */
double hyp_launcher_batch(void *user, enum hyp_side side, unsigned calls);

/* Finds launches as C++ programs make them, for launcher->other: the library that ci/launch_cxx
 * builds, beside this program or in its lib/. false: there is none, or it does not work on this
 * device, and the attack has a note of it. */
bool hyp_launcher_use_cxx(struct hyp_launcher *launcher);

/* Times single launches of both sides in turns, so many of each, into the series "NAME_driver" and
 * "NAME_runtime": how they are spread, which a comparison does not show. */
void hyp_launcher_record(struct hyp_launcher *launcher, const char *name, unsigned calls);

/* Holds the count against what was launched. */
void hyp_launcher_end(struct hyp_launcher *launcher);

#endif
