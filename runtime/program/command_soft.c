/*
 * soft: runs any program on the soft device, as valgrind runs one under its checks.
 *
 *     tollens soft [options] -- PROGRAM ARGUMENTS...
 *
 * The audit library (runtime/soft/audit) decides which libraries the program and its children get.
 * Programs that look for the file libcuda.so.1, to link with it, find it in a folder of links in
 * front of LD_LIBRARY_PATH. Output and exit code are the program's; the summary goes to stderr.
 */
#include "audit/audit_names.h"
#include "run/command.h"
#include "harness/session.h"
#include "soft_program.h"
#include "soft_report.h"
#include "soft_toolchain.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: tollens soft [options] -- PROGRAM ARGUMENTS\n"
    "\n"
    "Runs a CUDA program, and its children, on the soft device: it needs no GPU, and checks every\n"
    "memory access of a kernel. The three most common commands:\n"
    "\n"
    "    tollens soft -- python train.py\n"
    "    tollens soft --check memory,init,sync,race --error-exitcode 1 -- ./my-test\n"
    "    tollens soft --devices 2 --memory 512M -- pytest\n"
    "\n"
    "  --check LIST         memory, init, sync, race, race=strict, stream, leak, fatal,\n"
    "                       continue; default: memory,init,sync\n"
    "  --json               print the summary as one JSON object (hypotheses/JSON.md)\n"
    "  --error-exitcode N   the exit code if anything was found; default: the program's\n"
    "  --report FILE        append the findings to FILE, one JSON object per line\n"
    "  --suppressions FILE  do not report the findings that FILE names "
    "(runtime/soft/check/RULES.md)\n"
    "  --write-suppressions FILE\n"
    "                       append a line to FILE for each place with findings\n"
    "  --trace FILE         write a line for each operation, and for each call that allocates,\n"
    "                       frees or waits, of all processes, as JSON for Perfetto\n"
    "                       (ui.perfetto.dev)\n"
    "  --devices N          the number of devices, 1 to 8; default 1\n"
    "  --memory SIZE        the memory of each device, such as 512M; default 8G\n"
    "  --compute N          the compute capability, 70 to 121; default 90\n"
    "  --driver N           the CUDA version of the driver, such as 12040; default 13000\n"
    "  --faults FILE        make calls fail as FILE says (runtime/soft/driver/FAULTS.md)\n"
    "  --seed N             another order of blocks and warps\n"
    "  --order WORD         which stream runs next: turns, oldest, newest or drawn by the seed\n"
    "  --no-nvjitlink       hide nvJitLink, so that numba-cuda and others link PTX through the\n"
    "                       driver instead of generating machine code\n"
    "  --toolchain off      leave NVIDIA's ptxas, nvcc, NVRTC and nvJitLink as they are; by "
    "default\n"
    "                       a run has its own, which give PTX to the soft device in place of\n"
    "                       machine code (runtime/soft/toolchain/README.md)\n"
    "  --allow-unused       succeed even if the program never uses the device; otherwise that is\n"
    "                       exit code 2\n"
    "  --workers N          threads that run blocks; with 1, a run is deterministic\n"
    "\n"
    "The kernels must have PTX of a target that the device has, such as\n"
    "    nvcc -gencode arch=compute_80,code=compute_80 -lineinfo\n"
    "The libraries libcuda, libcudart, libcublas, libcublasLt and libnvidia-ml are replaced "
    "wherever\n"
    "the program looks for them. A CUDA runtime that nvcc linked statically is replaced too, "
    "unless the program is\n"
    "stripped. Programs that are setuid, static or not linked with glibc are refused; tollens\n"
    "doctor -- PROGRAM says what would be done for a program.\n"
    "A summary goes to stderr at the end. Exit codes: the program's, or 128 plus the number of "
    "the\n"
    "signal that ended it, or that of --error-exitcode; 2 if the program could not be run, or "
    "ended\n"
    "with 0 without having used the device.\n";

enum { NAME_BYTES = 32, HELPED = -1 };

struct soft_run {
    char folder[PATH_MAX]; /* with the links and the files below */
    char summary[PATH_MAX + NAME_BYTES];
    char report[PATH_MAX + NAME_BYTES]; /* where findings go */
    long report_bytes;                  /* what the file had before */
    bool keeps_report;
    char trace[PATH_MAX];     /* "": there is none */
    const char *suppressions; /* to be written; NULL: none */
    bool hides_nvjitlink, as_json;
    bool allows_unused;  /* a program that does not use the device is no error */
    uint64_t error_code; /* the exit code where something was found; 0: the program's */
    char **words;        /* the program and its arguments */
    struct hyp_soft_program program;
};

/* What is made in the folder: names for the soft device, of which CUDA's runtime opens the first
 * and others the second, and which is NVML as well; the compilers of the toolchain, of which
 * nvJitLink may be hidden: a program that finds a library of that name without its functions links
 * through the driver; the runtime libraries and cuBLAS. */
static const char *const links[] = {"libcuda.so.1",       "libcuda.so",         "libnvidia-ml.so.1",
                                    "libnvJitLink.so.12", "libnvJitLink.so.13", "libnvrtc.so.12",
                                    "libnvrtc.so.13",     "libcudart.so.12",    "libcudart.so.13",
                                    "libcublas.so.12",    "libcublas.so.13",    "libcublasLt.so.12",
                                    "libcublasLt.so.13"};
enum { LINKS = sizeof links / sizeof links[0], DRIVER_LINKS = 3, HIDING_LINKS = 5, COMPILERS = 7 };

/* Options whose value a variable of the soft device takes. */
static const struct {
    const char *option, *variable;
} variables[] = {{"--check", "TOLLENS_SOFT_CHECK"},     {"--devices", "TOLLENS_SOFT_DEVICES"},
                 {"--memory", "TOLLENS_SOFT_MEMORY"},   {"--compute", "TOLLENS_SOFT_COMPUTE"},
                 {"--faults", "TOLLENS_SOFT_FAULTS"},   {"--seed", "TOLLENS_SOFT_SEED"},
                 {"--workers", "TOLLENS_SOFT_WORKERS"}, {"--driver", "TOLLENS_SOFT_DRIVER_VERSION"},
                 {"--order", "TOLLENS_SOFT_ORDER"}};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

/* The name of the option, and its value, whether they are one word or two. */
static const char *soft_value_of(const char *option, int *at, int count, char **words) {
    const size_t length = strlen(option);
    if (strncmp(words[*at], option, length) != 0) return NULL;
    if (words[*at][length] == '=') return words[*at] + length + 1;
    if (words[*at][length] != '\0' || *at + 1 >= count) return NULL;
    return words[++*at];
}

static int set_report(struct soft_run *run, const char *path) {
    FILE *file = fopen(path, "a");
    if (file == NULL) {
        return hyp_command_complain("soft: the report %s cannot be written: %s", path,
                                    strerror(errno));
    }
    run->report_bytes = ftell(file);
    fclose(file);
    if (realpath(path, run->report) == NULL) { /* the program may change its folder */
        return hyp_command_complain("soft: %s: %s", path, strerror(errno));
    }
    run->keeps_report = true;
    return HYP_EXIT_OK;
}

/* Begins the list that the processes add to; end_trace ends it. */
static int set_trace(struct soft_run *run, const char *path) {
    static const char head[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    FILE *file = fopen(path, "w");
    bool ok = file != NULL && fputs(head, file) >= 0;
    if (file != NULL) ok = fclose(file) == 0 && ok;
    if (!ok || realpath(path, run->trace) == NULL) {
        run->trace[0] = '\0';
        return hyp_command_complain("soft: the trace %s cannot be written: %s", path,
                                    strerror(errno));
    }
    setenv("TOLLENS_SOFT_TRACE", run->trace, 1);
    return HYP_EXIT_OK;
}

/* After the last comma there must be an event. Returns whether there is no trace or it is whole. */
static bool end_trace(const struct soft_run *run) {
    if (run->trace[0] == '\0') return true;
    FILE *file = fopen(run->trace, "a");
    bool ok =
        file != NULL && fprintf(file,
                                "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%ld,\"tid\":0,"
                                "\"args\":{\"name\":\"tollens soft\"}}\n]}\n",
                                (long)getpid()) > 0;
    if (file != NULL) ok = fclose(file) == 0 && ok;
    if (!ok) {
        hyp_command_complain("soft: the trace %s cannot be written: %s", run->trace,
                             strerror(errno));
    }
    return ok;
}

static int soft_read_words(struct soft_run *run, int count, char **words) {
    int at = 0;
    hyp_command_has_help(usage, strlen(usage));
    if (count > 0 && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) {
        fputs(usage, stdout);
        return HELPED;
    }
    for (; at < count && strcmp(words[at], "--") != 0; at++) {
        const char *value = NULL;
        int i = 0;
        while (i < VARIABLES &&
               (value = soft_value_of(variables[i].option, &at, count, words)) == NULL) {
            i++;
        }
        if (strcmp(words[at], "--no-nvjitlink") == 0) {
            run->hides_nvjitlink = true;
        } else if (value == NULL &&
                   (value = soft_value_of("--toolchain", &at, count, words)) != NULL) {
            if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0) {
                return hyp_command_complain("soft: --toolchain is on or off, not %s", value);
            }
            setenv("TOLLENS_SOFT_TOOLCHAIN", value, 1); /* the audit library reads it too */
        } else if (strcmp(words[at], "--allow-unused") == 0) {
            run->allows_unused = true;
        } else if (strcmp(words[at], "--json") == 0) {
            run->as_json = true;
        } else if (value != NULL) {
            setenv(variables[i].variable, value, 1);
        } else if ((value = soft_value_of("--report", &at, count, words)) != NULL) {
            if (set_report(run, value) != HYP_EXIT_OK) return HYP_EXIT_ERROR;
        } else if ((value = soft_value_of("--suppressions", &at, count, words)) != NULL) {
            char path[PATH_MAX]; /* the program may change its folder */
            if (realpath(value, path) == NULL) {
                return hyp_command_complain("soft: the suppressions %s: %s", value,
                                            strerror(errno));
            }
            setenv("TOLLENS_SOFT_SUPPRESSIONS", path, 1);
        } else if ((value = soft_value_of("--write-suppressions", &at, count, words)) != NULL) {
            run->suppressions = value;
        } else if ((value = soft_value_of("--trace", &at, count, words)) != NULL) {
            if (set_trace(run, value) != HYP_EXIT_OK) return HYP_EXIT_ERROR;
        } else if ((value = soft_value_of("--error-exitcode", &at, count, words)) != NULL) {
            if (!hyp_session_number(value, 255, &run->error_code)) {
                return hyp_command_complain("soft: --error-exitcode takes a number from 0 to 255, "
                                            "not %s",
                                            value);
            }
        } else {
            return hyp_command_complain("soft: %s is not an option with a value; the program "
                                        "follows --%s",
                                        words[at], hyp_command_meant(words[at]));
        }
    }
    if (at + 1 >= count) {
        return hyp_command_complain("soft requires a program: tollens soft -- PROGRAM ARGUMENTS");
    }
    run->words = words + at + 1;
    return HYP_EXIT_OK;
}

static void end_folder(struct soft_run *run) {
    char path[PATH_MAX + NAME_BYTES];
    if (run->folder[0] == '\0') return;
    for (int i = 0; i < LINKS; i++) {
        snprintf(path, sizeof path, "%s/%s", run->folder, links[i]);
        unlink(path);
    }
    hyp_soft_toolchain_close(run->folder);
    unlink(run->summary);
    if (!run->keeps_report) unlink(run->report);
    rmdir(run->folder);
}

static bool has_toolchain(void) {
    const char *value = getenv("TOLLENS_SOFT_TOOLCHAIN");
    return value == NULL || strcmp(value, "off") != 0;
}

/* The file that a link of the folder names. false: there is to be no link. */
static bool find_target(const struct soft_run *run, int link, const char *soft, char *path,
                        size_t bytes) {
    if (link < DRIVER_LINKS || (link < HIDING_LINKS && run->hides_nvjitlink)) {
        snprintf(path, bytes, "%s", soft);
        return true;
    }
    return (link >= COMPILERS || has_toolchain()) &&
           audit_name_file(links[link], soft, path, bytes);
}

/* Whether the soft device can read all its options. It complains on stderr itself. */
static int soft_check_options(const char *library) {
    int (*complaints)(void) = NULL;
    void *device = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *address = device != NULL ? dlsym(device, "tollens_soft_options_complaints") : NULL;
    if (address == NULL) {
        return hyp_command_complain("soft: %s is not the soft device of this program", library);
    }
    memcpy(&complaints, &address, sizeof complaints);
    const int count = complaints();
    dlclose(device);
    return count == 0 ? HYP_EXIT_OK
                      : hyp_command_complain("soft: an option has a value that it cannot have");
}

/* The parent of the folder. The loader splits LD_LIBRARY_PATH at : and ; and expands $. */
static const char *soft_parent(void) {
    const char *parent = getenv("TMPDIR");
    return parent != NULL && parent[0] != '\0' && strpbrk(parent, ":;$") == NULL ? parent : "/tmp";
}

/* The folder that the loader finds the device in, and where the processes write. */
static int soft_make_folder(struct soft_run *run) {
    char library[PATH_MAX], path[PATH_MAX + NAME_BYTES], target[PATH_MAX + NAME_BYTES];
    const char *parent = soft_parent(), *before = getenv("LD_LIBRARY_PATH");
    if (realpath(hyp_session_soft_library(), library) == NULL) {
        return hyp_command_complain("soft: the soft device %s: %s", hyp_session_soft_library(),
                                    strerror(errno));
    }
    if (soft_check_options(library) != HYP_EXIT_OK) return HYP_EXIT_ERROR;
    const char *says = hyp_soft_program_audit(&run->program, library);
    if (says[0] != '\0') fprintf(stderr, "tollens soft: %s\n", says);
    snprintf(run->folder, sizeof run->folder, "%.2000s/tollens-soft-XXXXXX", parent);
    if (mkdtemp(run->folder) == NULL) {
        const int error = errno;
        hyp_command_complain("soft: no folder can be made in %s: %s", parent, strerror(error));
        run->folder[0] = '\0';
        return HYP_EXIT_ERROR;
    }
    for (int i = 0; i < LINKS; i++) {
        if (!find_target(run, i, library, target, sizeof target)) continue;
        snprintf(path, sizeof path, "%s/%s", run->folder, links[i]);
        if (symlink(target, path) != 0) {
            return hyp_command_complain("soft: %s: %s", path, strerror(errno));
        }
    }
    if (has_toolchain() && !hyp_soft_toolchain_open(run->folder)) return HYP_EXIT_ERROR;
    snprintf(run->summary, sizeof run->summary, "%s/summary", run->folder);
    if (!run->keeps_report) snprintf(run->report, sizeof run->report, "%s/report", run->folder);
    const size_t bytes = strlen(run->folder) + (before != NULL ? strlen(before) : 0) + 2;
    char *list = malloc(bytes);
    if (list == NULL) return hyp_command_complain("soft: out of memory");
    snprintf(list, bytes, "%s%s%s", run->folder, before != NULL && before[0] != '\0' ? ":" : "",
             before != NULL ? before : "");
    setenv("LD_LIBRARY_PATH", list, 1);
    free(list);
    setenv("TOLLENS_SOFT_SUMMARY", run->summary, 1);
    setenv("TOLLENS_SOFT_REPORT", run->report, 1);
    return HYP_EXIT_OK;
}

/* Whether the loader will do what the environment asks for. Children are not looked at. */
static int soft_check_program(struct soft_run *run) {
    hyp_soft_program_read(run->words[0], &run->program);
    if (run->program.refusal[0] == '\0' || run->allows_unused) return HYP_EXIT_OK;
    hyp_command_next("%s soft --allow-unused -- %s, if only its children use the device",
                     hyp_command_program(), run->words[0]);
    return hyp_command_complain("soft: %s", run->program.refusal);
}

static volatile sig_atomic_t child;

static void pass_on(int number) {
    if (child > 0) kill((pid_t)child, number);
}

/* The exit code of a shell: what the program returned, or 128 and the signal that ended it. */
static int run_program(const struct soft_run *run) {
    extern char **environ;
    struct sigaction action = {.sa_handler = pass_on};
    pid_t id = 0;
    int status = 0;
    /* Ctrl-C also reaches the program; this process remains to report the findings. */
    signal(SIGINT, SIG_IGN);
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGXFSZ);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int error = posix_spawnp(&id, run->words[0], NULL, &attributes, run->words, environ);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        hyp_command_complain("soft: %s cannot be run: %s", run->words[0], strerror(error));
        hyp_command_next("command -v %s, which must print the path of a program", run->words[0]);
        return -1;
    }
    child = id;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    pid_t ended = 0;
    while ((ended = waitpid(id, &status, 0)) < 0 && errno == EINTR) continue;
    child = 0;
    if (ended != id) {
        hyp_command_complain("soft: how %s ended is not known: %s", run->words[0], strerror(errno));
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int hyp_command_soft(int count, char **words) {
    struct soft_run run = {.folder = ""};
    struct hyp_soft_report report = {.findings = 0};
    int code = soft_read_words(&run, count, words);
    if (code == HYP_EXIT_OK) code = soft_check_program(&run);
    if (code == HYP_EXIT_OK) code = soft_make_folder(&run);
    if (code != HYP_EXIT_OK) {
        end_folder(&run);
        return code == HELPED ? HYP_EXIT_OK : code;
    }
    code = run_program(&run);
    const bool has_trace = end_trace(&run);
    if (code >= 0) {
        const char *checks = getenv("TOLLENS_SOFT_CHECK");
        hyp_soft_report_findings(&report, run.report, run.report_bytes);
        hyp_soft_report_summaries(&report, run.summary);
        if (checks == NULL || checks[0] == '\0') checks = "memory,init,sync";
        if (run.as_json) {
            hyp_soft_report_json(&report, checks, code, stderr);
        } else {
            hyp_soft_report_print(&report, checks, stderr);
        }
    }
    const bool has_suppressions =
        run.suppressions == NULL ||
        hyp_soft_report_suppress(run.report, run.report_bytes, run.suppressions);
    if (!has_suppressions) {
        hyp_command_complain("soft: the suppressions %s cannot be written: %s", run.suppressions,
                             strerror(errno));
    }
    end_folder(&run);
    if (code < 0 || !has_suppressions) return HYP_EXIT_ERROR;
    if (report.findings > 0 && run.error_code > 0) return (int)run.error_code;
    if (code != 0) return code;
    if (report.begun == 0 && report.findings == 0 && !run.allows_unused) {
        hyp_command_next("%s soft --allow-unused -- %s, if it need not use the device",
                         hyp_command_program(), run.words[0]);
        return hyp_command_complain("soft: no process used the device, so nothing was tested");
    }
    return has_trace && report.unreadable == 0 ? HYP_EXIT_OK : HYP_EXIT_ERROR;
}
