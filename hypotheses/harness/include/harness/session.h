/*
 * Session: the device of an attack, where its evidence goes, and its mode.
 *
 * Criterion starts every test in a new process without arguments, so the session is passed in the
 * environment. `tollens run` sets the variables; a person can set them too.
 */
#ifndef HYP_SESSION_H
#define HYP_SESSION_H

#include "tollens.h"

#include <stdbool.h>

enum hyp_device_kind { HYP_DEVICE_AUTO, HYP_DEVICE_CUDA, HYP_DEVICE_SOFT };

enum { HYP_FILTER_BYTES_MAX = 200, HYP_NODE_BYTES_MAX = 63 };
enum { HYP_DEADLINE_S_MAX = 1000000 };
#define HYP_SEED_MAX ((uint64_t)INT64_MAX) /* JSON readers do not support larger integers */

struct hyp_session {
    enum hyp_device_kind kind; /* TOLLENS_DEVICE: auto, cuda[:N], soft[:N] */
    int ordinal;
    bool full;            /* TOLLENS_MODE: quick or full */
    uint64_t seed;        /* TOLLENS_SEED */
    bool is_repeated;     /* TOLLENS_REPEATED: 1 under the second of several seeds and the others */
    unsigned process;     /* TOLLENS_PROCESS: of a claim's fresh processes, from 1; 0: unknown */
    const char *filter;   /* TOLLENS_FILTER: a glob of the attacks to run; NULL: all */
    uint64_t deadline_s;  /* TOLLENS_DEADLINE: seconds per attack; 0: the default of the mode */
    const char *out;      /* TOLLENS_OUT: the claim's folder; NULL: write no evidence */
    const char *node;     /* TOLLENS_NODE: the machine's name in its fleet; NULL: not to be named */
    const char *sabotage; /* TOLLENS_SABOTAGE: the fault to inject; NULL: none */
    const char *trace;    /* TOLLENS_TRACE: the file that attacks add events to; NULL: none */
};

/* Reads the environment. false: a value is invalid; hyp_error() says which. */
bool hyp_session_read(struct hyp_session *session);

/* Parses decimal digits as a number of at most most. false: invalid; hyp_error() is not set. */
bool hyp_session_number(const char *text, uint64_t most, uint64_t *number);

/* Seconds per attack. The default is far above what any attack needs on a slow and busy machine. */
double hyp_session_deadline_s(const struct hyp_session *session);

/* Parses the value of --device. false: hyp_error(). */
bool hyp_session_device(const char *text, enum hyp_device_kind *kind, int *ordinal);
const char *hyp_device_kind_name(enum hyp_device_kind kind);

/* The soft device's library: TOLLENS_SOFT_LIBRARY, or the one beside this program, in its lib/
 * or in the lib/ beside its folder. */
const char *hyp_session_soft_library(void);

/* The folder that contains fixtures/: TOLLENS_ROOT, or found relative to this program. NULL: not
 * found; hyp_error() lists the places searched. */
TOL_API const char *hyp_session_root(void);

/* The path to start this program again; under valgrind /proc/self/exe is valgrind's own. */
const char *hyp_session_program(void);

/* The folder of this program, without a final slash. */
TOL_API const char *hyp_session_program_folder(void);

/* The runtime's message without its source location, for people. */
const char *hyp_session_message(void);

/* The same of a message that was kept: without the place in the source. Points into it. */
const char *hyp_session_sentence(const char *message);

/* The same of a failure that perhaps has no such message: else hyp_error(), or what the status
 * means; never empty. */
const char *hyp_session_message_of(tol_status status);

/* Opens the driver of a kind. HYP_DEVICE_AUTO selects the platform's driver if it has a device,
 * and the soft device otherwise; *kind is set to the choice. On failure tol_message() says why. */
tol_status hyp_session_open(enum hyp_device_kind *kind, struct tol_driver **driver);

#endif
