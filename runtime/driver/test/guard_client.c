/*
 * guard-client: a worker of a guard that fails on request, for tests and for GPU machines.
 *
 *     guard-client [--device] [--log FILE] [--how KIND --every N [--on DEVICE]] [--chaos SEED]
 *     guard-client --probe [--chaos SEED]
 *
 * A job is a number n, and its answer n * n + 1, computed by a kernel with --device. Every N-th
 * number fails as KIND says, on the device DEVICE alone or wherever it is tried first. With --chaos
 * one job in 25 fails in any way, one start in 40 says no hello, and one probe in 25 fails.
 *
 * The log has a line for each job that is begun and each that is about to be answered. While a
 * process has a job it locks a byte of the log: a second one that has the same job says "overlap".
 */
#include "tollens/tollens.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KINDS(X)                                                                                   \
    X(FAULT, "fault")     /* a kernel that writes outside, or the sentence of one */               \
    X(HANG, "hang")       /* a kernel that never ends, or a process that does not go on */         \
    X(KILL, "kill")       /* SIGKILL to itself */                                                  \
    X(EXIT, "exit")       /* it ends without a word, with exit code 0 */                           \
    X(GARBAGE, "garbage") /* writes what is no frame */                                            \
    X(STOP, "stop")       /* SIGSTOP to itself: no more signs of life */                           \
    X(MUTE, "mute")       /* closes its output and stays */                                        \
    X(AFTER, "after")     /* dies once it has answered */                                          \
    X(TWICE, "twice")     /* answers twice */                                                      \
    X(OTHER, "other")     /* answers a job that it does not have */                                \
    X(CHILD, "child")     /* starts a process that stays, and dies */                              \
    X(HEAVY, "heavy")     /* hangs with so much memory that SIGKILL takes a while */

enum kind {
    NONE = -1,
#define KIND(name, word) name,
    KINDS(KIND)
#undef KIND
        KIND_COUNT
};

static const char *const kind_names[] = {
#define KIND(name, word) word,
    KINDS(KIND)
#undef KIND
};

struct client {
    bool uses_device, is_probe, has_chaos;
    uint64_t chaos, every;
    enum kind how;
    const char *on, *device;
    int log, raw; /* raw: what was stdout */
    struct tol_driver *driver;
    struct tol_context *context;
    struct tol_stream *stream;
    struct tol_module *module;
    struct tol_buffer *buffer;
    struct tol_kernel *kernel;
};

/* how 1 writes where nothing is; how 2 never ends. */
static const char ptx[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry work(.param .u64 out, .param .u64 n, .param .u32 how) {\n"
    "  .reg .b64 %rd<4>; .reg .b32 %r<2>; .reg .pred %p<3>;\n"
    "  ld.param.u64 %rd0, [out];\n"
    "  ld.param.u64 %rd1, [n];\n"
    "  ld.param.u32 %r0, [how];\n"
    "  setp.eq.u32 %p0, %r0, 1;\n"
    "  setp.eq.u32 %p1, %r0, 2;\n"
    "  @%p0 mov.u64 %rd0, 64;\n"
    "again:\n"
    "  mad.lo.u64 %rd2, %rd1, %rd1, 1;\n"
    "  st.volatile.global.u64 [%rd0], %rd2;\n"
    "  @%p1 bra again;\n"
    "  ret;\n}\n";

/* ---- chance ---- */

static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* True for one in n, by a number and the seed. */
static bool happens(const struct client *c, uint64_t number, unsigned one_in) {
    return c->has_chaos && mixed(number * 2654435761u + c->chaos) % one_in == 0;
}

static enum kind chosen(const struct client *c, uint64_t n, bool was_tried) {
    if (c->how != NONE) {
        const bool is_here = c->on != NULL ? strcmp(c->on, c->device) == 0 : !was_tried;
        return is_here && n % c->every == 0 ? c->how : NONE;
    }
    if (was_tried || !happens(c, n, 25)) return NONE;
    return (enum kind)(mixed(n + 77 * c->chaos) % HEAVY);
}

/* ---- the log ---- */

static void note(const struct client *c, const char *word, uint64_t n) {
    char line[128];
    if (c->log < 0) return;
    const int length = snprintf(line, sizeof line, "%s %llu %ld %.60s\n", word,
                                (unsigned long long)n, (long)getpid(), c->device);
    if (write(c->log, line, (size_t)length) != length) _exit(3);
}

static void hold(const struct client *c, uint64_t n, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)n, .l_len = 1};
    if (c->log >= 0 && fcntl(c->log, F_SETLK, &lock) != 0) note(c, "overlap", n);
}

/* How many descriptors it was started with. */
static uint64_t count_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    for (; folder != NULL && readdir(folder) != NULL; count++) continue;
    if (folder != NULL) closedir(folder);
    return count;
}

/* ---- the device ---- */

static tol_status open_device(struct client *c) {
    const char *chosen_device = getenv("TOLLENS_DEVICE");
    const char *ordinal = chosen_device != NULL ? strchr(chosen_device, ':') : NULL;
    char soft[4096];
    const ssize_t length = readlink("/proc/self/exe", soft, sizeof soft - 32);
    soft[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(soft, '/');
    if (slash != NULL) strcpy(slash + 1, "libtollens-soft.so");
    tol_status status =
        tol_driver_open(strncmp(c->device, "soft:", 5) == 0 ? soft : NULL, &c->driver);
    if (status == TOL_OK) {
        status =
            tol_context_create(c->driver, ordinal != NULL ? atoi(ordinal + 1) : 0, &c->context);
    }
    if (status == TOL_OK) status = tol_stream_create(c->context, NULL, &c->stream);
    if (status == TOL_OK) {
        status = tol_module_load(c->context, ptx, sizeof ptx - 1, NULL, &c->module);
    }
    if (status == TOL_OK) status = tol_module_kernel(c->module, "work", &c->kernel);
    if (status == TOL_OK) status = tol_buffer_create(c->context, 1, 8, &c->buffer);
    return status;
}

static void close_device(struct client *c) {
    tol_buffer_destroy(c->buffer);
    tol_module_destroy(c->module);
    tol_stream_destroy(c->stream);
    tol_context_destroy(c->context);
    tol_driver_close(c->driver);
}

static tol_status compute(struct client *c, uint64_t n, unsigned how, uint64_t *answer) {
    tol_status status = tol_launch(c->stream, c->kernel, tol_launch_linear(1, 1),
                                   TOL_ARGUMENTS(tol_buffer_address(c->buffer), n, how));
    if (status == TOL_OK) status = tol_stream_synchronize(c->stream);
    if (status == TOL_OK) status = tol_buffer_read(c->buffer, answer, sizeof *answer);
    return status;
}

/* ---- failures ---- */

static void say(const struct client *c, const char *text) {
    if (write(c->raw, text, strlen(text)) < 0) _exit(3);
}

static void die(void) {
    raise(SIGKILL);
}

static void wait_for_ever(void) {
    for (;;) pause();
}

static void leave_child(const struct client *c) {
    if (fork() == 0) {
        close(c->log);
        wait_for_ever(); /* its output is the worker's, and stays open */
    }
    die();
}

static void hang_heavily(void) {
    const size_t bytes = (size_t)200 << 20;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) _exit(3);
    madvise(memory, bytes, MADV_NOHUGEPAGE); /* each page is freed by itself */
    memset(memory, 1, bytes);
    wait_for_ever();
}

/* Fails before the job is answered. FAULT and HANG come back where no device does that for them. */
static void fail_before(const struct client *c, enum kind how) {
    switch (how) {
    case HANG:
        if (!c->uses_device) wait_for_ever();
        return;
    case KILL:
        die();
        return;
    case EXIT:
        _exit(0);
    case GARBAGE:
        say(c, "loading shared library ...\n");
        wait_for_ever();
        return;
    case STOP:
        raise(SIGSTOP);
        return;
    case MUTE:
        for (int file = 3; file < 64; file++) close(file); /* the worker has one of its own */
        return;
    case OTHER:
        say(c, "done 1000000007 1\n0\n");
        wait_for_ever();
        return;
    case CHILD:
        leave_child(c);
        return;
    case HEAVY:
        hang_heavily();
        return;
    case FAULT:
    case AFTER:
    case TWICE:
    case NONE:
    case KIND_COUNT:
        return;
    }
}

/* Without a device: what the runtime says after a fault. */
static tol_status pretend(uint64_t n, enum kind how, uint64_t *answer) {
    *answer = n * n + 1;
    return how == FAULT ? TOL_POISONED : TOL_OK;
}

/* ---- jobs ---- */

static tol_status work(struct client *c, struct tol_guard_worker *worker,
                       const struct tol_guard_work *job) {
    char text[40];
    uint64_t answer = 0;
    const uint64_t n = strtoull(job->bytes, NULL, 10);
    const enum kind how = chosen(c, n, job->parts_count > 0);
    hold(c, n, F_WRLCK);
    note(c, "begin", n);
    if (how != NONE && c->on == NULL) tol_guard_worker_keep(worker, job, "tried", 5);
    fail_before(c, how);
    if (how == MUTE) wait_for_ever();
    const tol_status status = c->uses_device ? compute(c, n,
                                                       how == FAULT  ? 1
                                                       : how == HANG ? 2
                                                                     : 0,
                                                       &answer)
                                             : pretend(n, how, &answer);
    if (status != TOL_OK) {
        hold(c, n, F_UNLCK);
        return tol_guard_worker_failed(worker, job, status);
    }
    note(c, "end", n);
    hold(c, n, F_UNLCK);
    const int length = snprintf(text, sizeof text, "%llu", (unsigned long long)answer);
    if (how == TWICE) tol_guard_worker_done(worker, job, text, (size_t)length);
    const tol_status told = tol_guard_worker_done(worker, job, text, (size_t)length);
    if (how == AFTER) die();
    return told;
}

static int probe(struct client *c) {
    uint64_t answer = 0;
    if (happens(c, (uint64_t)getpid(), 25)) {
        printf("this device was asked to fail\n");
        return 1;
    }
    if (happens(c, (uint64_t)getpid() + 1, 80)) wait_for_ever();
    tol_status status = c->uses_device ? open_device(c) : TOL_OK;
    if (status == TOL_OK && c->uses_device) status = compute(c, 3, 0, &answer);
    if (status != TOL_OK) printf("%s\n", tol_message());
    close_device(c);
    return status != TOL_OK;
}

static int run(struct client *c) {
    struct tol_guard_worker *worker = NULL;
    struct tol_guard_work job;
    tol_status status = TOL_OK;
    note(c, "files", count_files());
    if (happens(c, (uint64_t)getpid(), 40)) wait_for_ever(); /* no hello */
    if (happens(c, (uint64_t)getpid() + 1, 60)) say(c, "ready.\n");
    if (c->uses_device) status = open_device(c);
    if (status == TOL_OK) status = tol_guard_worker_open("a worker of tests", &worker);
    while (status == TOL_OK) {
        status = tol_guard_worker_next(worker, &job);
        if (status == TOL_OK && job.number == 0) break;
        if (status == TOL_OK) status = work(c, worker, &job);
    }
    if (status != TOL_OK) fprintf(stderr, "guard-client: %s\n", tol_message());
    tol_guard_worker_close(worker);
    close_device(c);
    return status != TOL_OK;
}

static bool read_word(struct client *c, const char *word, const char *value) {
    if (strcmp(word, "--log") == 0) {
        c->log = open(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        return c->log >= 0;
    }
    if (strcmp(word, "--how") == 0) {
        for (int i = 0; i < KIND_COUNT; i++) {
            if (strcmp(value, kind_names[i]) == 0) c->how = (enum kind)i;
        }
        return c->how != NONE;
    }
    if (strcmp(word, "--every") == 0) return (c->every = strtoull(value, NULL, 10)) > 0;
    if (strcmp(word, "--on") == 0) c->on = value;
    if (strcmp(word, "--chaos") == 0) {
        c->has_chaos = true;
        c->chaos = strtoull(value, NULL, 10);
    }
    return strcmp(word, "--on") == 0 || strcmp(word, "--chaos") == 0;
}

int main(int argc, char **argv) {
    struct client client = {.every = 1, .how = NONE, .log = -1, .raw = dup(STDOUT_FILENO)};
    client.device = getenv("TOLLENS_GUARD_DEVICE");
    if (client.device == NULL) client.device = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--device") == 0) {
            client.uses_device = true;
        } else if (strcmp(argv[i], "--probe") == 0) {
            client.is_probe = true;
        } else if (i + 1 >= argc || !read_word(&client, argv[i], argv[i + 1])) {
            fprintf(stderr, "guard-client: %s: no such option or value\n", argv[i]);
            return 2;
        } else {
            i++;
        }
    }
    const int code = client.is_probe ? probe(&client) : run(&client);
    fflush(NULL);
    _exit(code); /* a search for leaks, which SIGKILL may meet, would complain of that */
}
