/*
 * Reading the environment, finding the soft device and the fixtures.
 */
#include "harness/session.h"

#include "files/atomic_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

bool hyp_session_number(const char *text, uint64_t most, uint64_t *number) {
    uint64_t value = 0;
    if (text[0] == '\0') return false;
    for (; *text != '\0'; text++) {
        unsigned digit = (unsigned)(unsigned char)*text - '0';
        if (digit > 9 || value > (most - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

double hyp_session_deadline_s(const struct hyp_session *session) {
    if (session->deadline_s > 0) return (double)session->deadline_s;
    return session->full ? 1800 : 300;
}

bool hyp_session_device(const char *text, enum hyp_device_kind *kind, int *ordinal) {
    *ordinal = 0;
    if (text == NULL || text[0] == '\0' || strcmp(text, "auto") == 0) {
        *kind = HYP_DEVICE_AUTO;
        return true;
    }
    bool soft = strncmp(text, "soft", 4) == 0;
    if ((soft || strncmp(text, "cuda", 4) == 0) && (text[4] == '\0' || text[4] == ':')) {
        char *end = NULL;
        *kind = soft ? HYP_DEVICE_SOFT : HYP_DEVICE_CUDA;
        if (text[4] == '\0') return true;
        long number = strtol(text + 5, &end, 10);
        if (end != text + 5 && *end == '\0' && number >= 0 && number < 1024) {
            *ordinal = (int)number;
            return true;
        }
    }
    return hyp_fail("unknown device '%s': it must be auto, cuda, cuda:N, soft or soft:N", text);
}

const char *hyp_device_kind_name(enum hyp_device_kind kind) {
    return kind == HYP_DEVICE_CUDA ? "cuda" : kind == HYP_DEVICE_SOFT ? "soft" : "auto";
}

/* Pages, tables and other programs' files show it. */
static bool is_node_name(const char *text) {
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789.-_";
    const size_t bytes = strlen(text);
    return bytes <= HYP_NODE_BYTES_MAX && strspn(text, signs) == bytes;
}

bool hyp_session_read(struct hyp_session *session) {
    const char *mode = getenv("TOLLENS_MODE"), *seed = getenv("TOLLENS_SEED"),
               *deadline = getenv("TOLLENS_DEADLINE"), *process = getenv("TOLLENS_PROCESS");
    uint64_t number = 0;
    *session = (struct hyp_session){
        .out = getenv("TOLLENS_OUT"), .sabotage = getenv("TOLLENS_SABOTAGE"), .seed = 1};
    if (session->sabotage != NULL && session->sabotage[0] == '\0') session->sabotage = NULL;
    const char *repeated = getenv("TOLLENS_REPEATED");
    session->is_repeated = repeated != NULL && strcmp(repeated, "1") == 0;
    session->trace = getenv("TOLLENS_TRACE");
    if (session->trace != NULL && session->trace[0] == '\0') session->trace = NULL;
    session->filter = getenv("TOLLENS_FILTER");
    if (session->filter != NULL && session->filter[0] == '\0') session->filter = NULL;
    if (session->filter != NULL && strlen(session->filter) > HYP_FILTER_BYTES_MAX) {
        return hyp_fail("TOLLENS_FILTER is longer than %d bytes", HYP_FILTER_BYTES_MAX);
    }
    if (session->out != NULL && session->out[0] == '\0') session->out = NULL;
    session->node = getenv("TOLLENS_NODE");
    if (session->node != NULL && session->node[0] == '\0') session->node = NULL;
    if (session->node != NULL && !is_node_name(session->node)) {
        return hyp_fail("TOLLENS_NODE=%.80s: it must be up to %d letters, digits, dots, hyphens or "
                        "underscores",
                        session->node, HYP_NODE_BYTES_MAX);
    }
    if (mode != NULL && strcmp(mode, "full") == 0) {
        session->full = true;
    } else if (mode != NULL && mode[0] != '\0' && strcmp(mode, "quick") != 0) {
        return hyp_fail("TOLLENS_MODE=%s: it must be quick or full", mode);
    }
    if (seed != NULL && seed[0] != '\0') {
        if (!hyp_session_number(seed, HYP_SEED_MAX, &session->seed)) {
            return hyp_fail("TOLLENS_SEED=%s: it must be a number below 2^63", seed);
        }
    }
    if (deadline != NULL && deadline[0] != '\0' &&
        (!hyp_session_number(deadline, HYP_DEADLINE_S_MAX, &session->deadline_s) ||
         session->deadline_s == 0)) {
        return hyp_fail("TOLLENS_DEADLINE=%s: it must be a number of seconds", deadline);
    }
    if (process != NULL && process[0] != '\0') {
        if (!hyp_session_number(process, INT32_MAX, &number)) {
            return hyp_fail("TOLLENS_PROCESS=%s: it must be a number below 2^31", process);
        }
        session->process = (unsigned)number;
    }
    return hyp_session_device(getenv("TOLLENS_DEVICE"), &session->kind, &session->ordinal);
}

const char *hyp_session_program(void) {
    static _Thread_local char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    /* Without /proc, the path that it was started by. */
    const char *started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    if (length <= 0 && (started == NULL || realpath(started, path) == NULL)) path[0] = '\0';
    return path;
}

const char *hyp_session_program_folder(void) {
    static char folder[4096];
    snprintf(folder, sizeof folder, "%s", hyp_session_program());
    char *slash = strrchr(folder, '/');
    if (slash != NULL) *slash = '\0';
    return folder;
}

const char *hyp_session_soft_library(void) {
    static char path[4200];
    const char *given = getenv("TOLLENS_SOFT_LIBRARY");
    if (given != NULL && given[0] != '\0') return given;
    /* In a bundle, where it is installed, by ci/install or as a package, and where it was built. */
    static const char *const ways[] = {"/lib", "/../lib", "/../lib/tollens"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        snprintf(path, sizeof path, "%s%s/libtollens-soft.so", hyp_session_program_folder(),
                 ways[i]);
        if (access(path, R_OK) == 0) return path;
    }
    snprintf(path, sizeof path, "%s/libtollens-soft.so", hyp_session_program_folder());
    return path;
}

/* Whether the fixtures lie in a folder; root is then its whole path. */
static bool is_root(const char *folder, char *root, size_t bytes) {
    char probe[4300];
    snprintf(probe, sizeof probe, "%s/fixtures/ptx", folder);
    char *whole = access(probe, R_OK) == 0 ? realpath(folder, NULL) : NULL;
    if (whole == NULL) return false;
    snprintf(root, bytes, "%s", whole);
    free(whole);
    return true;
}

const char *hyp_session_root(void) {
    static char root[4200];
    static const char *const ways[] = {"", "/..", "/../..", "/../share/tollens"};
    char folder[4200];
    const char *given = getenv("TOLLENS_ROOT");
    if (given != NULL && given[0] != '\0') {
        if (is_root(given, root, sizeof root)) return root;
        hyp_fail("TOLLENS_ROOT=%s does not contain the folder fixtures/ptx", given);
        return NULL;
    }
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        snprintf(folder, sizeof folder, "%s%s", hyp_session_program_folder(), ways[i]);
        if (is_root(folder, root, sizeof root)) return root;
    }
    hyp_fail("the folder fixtures/ptx was not found in %s, in the two folders above it, or in "
             "share/tollens beside it",
             hyp_session_program_folder());
    return NULL;
}

const char *hyp_session_message(void) {
    return hyp_session_sentence(tol_message());
}

const char *hyp_session_sentence(const char *message) {
    const char *end = strstr(message, ".c:");
    if (end == NULL || memchr(message, ' ', (size_t)(end - message)) != NULL) return message;
    end += strlen(".c:");
    end += strspn(end, "0123456789");
    return strncmp(end, ": ", 2) == 0 ? end + 2 : message;
}

tol_status hyp_session_open(enum hyp_device_kind *kind, struct tol_driver **driver) {
    if (*kind != HYP_DEVICE_SOFT) {
        tol_status status = tol_driver_open(NULL, driver);
        int count = 0;
        if (status == TOL_OK && *kind == HYP_DEVICE_AUTO &&
            (tol_device_count(*driver, &count) != TOL_OK || count == 0)) {
            tol_driver_close(*driver);
            status = TOL_NO_DEVICE;
        }
        if (status == TOL_OK || *kind == HYP_DEVICE_CUDA) {
            *kind = HYP_DEVICE_CUDA;
            return status;
        }
    }
    *kind = HYP_DEVICE_SOFT;
    /* It selects GPUs, or hides them so that this device serves. */
    unsetenv("CUDA_VISIBLE_DEVICES");
    return tol_driver_open(hyp_session_soft_library(), driver);
}

const char *hyp_session_message_of(tol_status status) {
    if (tol_message()[0] != '\0') return hyp_session_message();
    return hyp_error()[0] != '\0' ? hyp_error() : tol_status_sentence(status);
}
