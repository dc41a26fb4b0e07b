/*
 * Session: which device an attack runs on, where its evidence goes, and how hard it tries.
 *
 * Criterion starts every test as a fresh process that gets no arguments, so all of this travels in
 * the environment. `tollens run` sets it; a person may, too.
 */
#ifndef HYP_SESSION_H
#define HYP_SESSION_H

#include "tollens.h"

#include <stdbool.h>

enum hyp_device_kind { HYP_DEVICE_AUTO, HYP_DEVICE_CUDA, HYP_DEVICE_SOFT };

enum { HYP_FILTER_BYTES_MAX = 200 };
enum { HYP_DEADLINE_S_MAX = 1000000 };
#define HYP_SEED_MAX ((uint64_t)INT64_MAX) /* JSON's readers know no larger whole numbers */

struct hyp_session {
    enum hyp_device_kind kind; /* TOLLENS_DEVICE: auto, cuda[:N], soft[:N] */
    int ordinal;
    bool full;            /* TOLLENS_MODE: quick or full */
    uint64_t seed;        /* TOLLENS_SEED */
    const char *filter;   /* TOLLENS_FILTER: which attacks run, a glob; NULL: all */
    uint64_t deadline_s;  /* TOLLENS_DEADLINE: what an attack may take; 0: what the mode allows */
    const char *out;      /* TOLLENS_OUT: the claim's folder; NULL: no evidence is kept */
    const char *sabotage; /* TOLLENS_SABOTAGE: the fault to make; NULL: none */
    const char *trace;    /* TOLLENS_TRACE: the list that attacks add their events to; NULL: none */
};

/* Reads the environment. false: a value makes no sense; hyp_error() says which. */
bool hyp_session_read(struct hyp_session *session);

/* Reads a whole number of digits alone, at most so much. false: it is none; nothing is noted. */
bool hyp_session_number(const char *text, uint64_t most, uint64_t *number);

/* What one attack may take: far above what any does, for machines that are slow and busy. */
double hyp_session_deadline_s(const struct hyp_session *session);

/* Parses a device as --device takes it. */
bool hyp_session_device(const char *text, enum hyp_device_kind *kind, int *ordinal);
const char *hyp_device_kind_name(enum hyp_device_kind kind);

/* The soft device's library: TOLLENS_SOFT_LIBRARY, or the one beside this program, in its lib/ or
 * in the lib/ beside its folder. */
const char *hyp_session_soft_library(void);

/* The folder that holds fixtures/: TOLLENS_ROOT, or found from where this program lies. NULL: not
 * found; hyp_error() says where was looked. */
const char *hyp_session_root(void);

/* The path of this program; to be started by, since /proc/self/exe is valgrind's under valgrind. */
const char *hyp_session_program(void);

/* The folder of this program, without a slash at the end. */
const char *hyp_session_program_folder(void);

/* The runtime's message without the place in its sources, for people. */
const char *hyp_session_message(void);

/* Opens the driver of a kind; for auto, the platform's if it has a device, else the soft one. *kind
 * says which it became. On failure the runtime's message says why. */
tol_status hyp_session_open(enum hyp_device_kind *kind, struct tol_driver **driver);

#endif
