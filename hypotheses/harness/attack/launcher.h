/*
 * Launcher: makes the same launch in two ways, for comparisons: by a direct driver call, as a C
 * program does, and through the runtime.
 *
 * Both sides launch the same kernel with one thread on one stream. The kernel counts its launches,
 * and every argument enters the count. After the comparison the count shows whether a timed launch
 * was lost or had wrong arguments.
 */
#ifndef HYP_LAUNCHER_H
#define HYP_LAUNCHER_H

#include "harness/attack.h"

/* A third way to launch: launches a kernel that counts at an address, on a CUstream. Returns 0
 * or an error code of its own; the error of a launch that is not waited for is left for
 * hyp_launch_other_error, which returns it, or 0. */
typedef int (*hyp_launch_other)(int arguments, unsigned long long count, void *stream,
                                unsigned calls, int synchronizes);
typedef int (*hyp_launch_other_error)(void);

struct hyp_ticks;

struct hyp_launcher {
    struct hyp_attack *attack;
    unsigned arguments;     /* 1, 4 or 16 */
    bool synchronizes;      /* after every launch */
    hyp_launch_other other; /* the baseline instead of the driver; NULL: the driver */
    hyp_launch_other cxx;   /* for other: C++ launches; NULL: not found */
    hyp_launch_other_error cxx_error;
    const struct hyp_ticks *ticks;
    struct tol_stream *stream;
    struct tol_kernel *kernel;
    struct tol_buffer *count;
    CUfunction function;
    CUstream handle;
    CUdeviceptr address;
    uint64_t made;
    double extra_share, extra_owed; /* of the saboteur launch_extra_percent */
};

/* Prepares both sides. Call hyp_launcher_end in any case. false: a violation was recorded. */
bool hyp_launcher_begin(struct hyp_attack *attack, unsigned arguments, bool synchronizes,
                        struct hyp_launcher *launcher);

/* For hyp_pair.call and hyp_pair.settle; user is the launcher: one launch, timed on its own, and
 * the wait for the stream, in which launches of the third way report their errors. */
double hyp_launcher_call(void *user, enum hyp_side side);
bool hyp_launcher_settle(void *user);

/* Sets launcher->cxx to launches as C++ programs make them, from the library that ci/launch_cxx
 * builds, beside this program or in its lib/. false: there is none, or it does not work on this
 * device; the attack has a note. */
bool hyp_launcher_find_cxx(struct hyp_launcher *launcher);

/* Times single launches of both sides alternately, into the series "NAME_driver" and
 * "NAME_runtime", which show the distribution that a comparison does not. */
void hyp_launcher_record(struct hyp_launcher *launcher, const char *name, unsigned calls);

/* Compares the kernel's count with the launches made. */
void hyp_launcher_end(struct hyp_launcher *launcher);

#endif
