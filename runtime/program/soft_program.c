/*
 * What is read is the file of the program itself. Of the libraries that it loads later, the audit
 * library says on stderr what it cannot do.
 */
#include "soft_program.h"

#include "audit/audit_elf.h"
#include "audit/audit_names.h"
#include "run/command.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { INTERPRETERS_MAX = 4 }; /* as many as the kernel follows */

/* With an audit library, the loader lays out thread-local variables before it opens libraries, and
 * those that need a fixed place get one of the spare bytes, of which there are 512. Each thread's
 * stack loses them. The threads' and leaks' sanitizers have more than a few. */
enum { TLS_BYTES = 8 << 10, TLS_BYTES_SANITIZED = 1 << 20 };

#ifdef __SANITIZE_ADDRESS__ /* libraries that the sanitizers are in cannot be preloaded */
enum { PRELOADS = 0 };
#else
enum { PRELOADS = 1 };
#endif

/* Finds an executable file as a shell does. */
static bool program_find(const char *word, char *path) {
    const char *folders = getenv("PATH");
    if (strchr(word, '/') != NULL) return realpath(word, path) != NULL;
    if (folders == NULL) folders = "/bin:/usr/bin";
    while (true) {
        char file[PATH_MAX];
        const size_t length = strcspn(folders, ":");
        const int written = snprintf(file, sizeof file, "%.*s%s%s", (int)length, folders,
                                     length > 0 ? "/" : "./", word);
        if (written > 0 && (size_t)written < sizeof file && access(file, X_OK) == 0 &&
            realpath(file, path) != NULL) {
            return true;
        }
        if (folders[length] == '\0') return false;
        folders += length + 1;
    }
}

/* Maps a file. NULL: it cannot be read. */
static const char *program_map(const char *path, struct stat *status) {
    void *bytes = MAP_FAILED;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && fstat(file, status) == 0 && S_ISREG(status->st_mode) && status->st_size > 0)
        bytes = mmap(NULL, (size_t)status->st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (file >= 0) close(file);
    return bytes != MAP_FAILED ? bytes : NULL;
}

/* The interpreter that the first line of a script names. false: it is no script. */
static bool find_interpreter(const char *bytes, size_t size, char *interpreter) {
    if (size < 3 || bytes[0] != '#' || bytes[1] != '!') return false;
    size_t first = 2, length = 0;
    while (first < size && (bytes[first] == ' ' || bytes[first] == '\t')) first++;
    while (first + length < size && length + 1 < PATH_MAX &&
           strchr(" \t\n", bytes[first + length]) == NULL) { /* a NUL ends it as well */
        length++;
    }
    snprintf(interpreter, PATH_MAX, "%.*s", (int)length, bytes + first);
    return length > 0;
}

/* Whether executing the file changes who the process is: the loader then ignores its variables. */
static bool changes_user(const struct stat *status) {
    return ((status->st_mode & S_ISUID) != 0 && status->st_uid != geteuid()) ||
           ((status->st_mode & S_ISGID) != 0 && status->st_gid != getegid());
}

/* glibc's loader is named ld-linux on every processor of Linux. */
static void program_judge(struct hyp_soft_program *program, const char *bytes,
                          const struct stat *status) {
    struct audit_elf elf;
    const bool is_elf = audit_elf_open(&elf, bytes, (size_t)status->st_size);
    const char *loader = is_elf ? audit_elf_loader(&elf) : NULL, *why = NULL, *name = NULL;
    for (unsigned i = 0; is_elf && (name = audit_elf_dynamic(&elf, DT_NEEDED, i)) != NULL; i++) {
        if (strncmp(name, "libtsan.", 8) == 0 || strncmp(name, "liblsan.", 8) == 0)
            program->tls_bytes = TLS_BYTES_SANITIZED;
    }
    if (changes_user(status)) {
        why = "is setuid or setgid, so the loader ignores LD_AUDIT";
    } else if (is_elf && loader == NULL) {
        why = "is statically linked, so no loader can give it the soft device";
    } else if (is_elf && strstr(loader, "/ld-linux") == NULL) {
        why = "is not linked with glibc, which the soft device needs";
    }
    if (why == NULL) return;
    snprintf(program->refusal, sizeof program->refusal, "%s %s%s%s", program->path, why,
             loader != NULL ? "; its loader is " : "", loader != NULL ? loader : "");
}

void hyp_soft_program_read(const char *word, struct hyp_soft_program *program) {
    *program = (struct hyp_soft_program){.path = "", .tls_bytes = TLS_BYTES};
    if (!program_find(word, program->path)) program->path[0] = '\0';
    for (int i = 0; i < INTERPRETERS_MAX && program->path[0] != '\0'; i++) {
        char interpreter[PATH_MAX], path[PATH_MAX];
        struct stat status;
        const char *bytes = program_map(program->path, &status);
        if (bytes == NULL) return;
        const bool is_script = find_interpreter(bytes, (size_t)status.st_size, interpreter);
        if (!is_script) program_judge(program, bytes, &status);
        munmap((void *)(uintptr_t)bytes, (size_t)status.st_size);
        if (!is_script || realpath(interpreter, path) == NULL) return;
        if (i == 0) snprintf(program->script, sizeof program->script, "%s", program->path);
        snprintf(program->path, sizeof program->path, "%s", path);
    }
}

/* Adds words to a variable whose words separator separates. false: there is no memory. */
static bool program_add_variable(const char *name, const char *words, char separator,
                                 bool is_first) {
    const char *before = getenv(name);
    if (before == NULL || before[0] == '\0') return setenv(name, words, 1) == 0;
    const size_t bytes = strlen(before) + strlen(words) + 2;
    char *list = malloc(bytes);
    if (list == NULL) return false;
    snprintf(list, bytes, "%s%c%s", is_first ? words : before, separator,
             is_first ? before : words);
    const bool done = setenv(name, list, 1) == 0;
    free(list);
    return done;
}

/* The runtimes that are preloaded. The loader separates them at blanks and colons, and the audit
 * library finds them by their names too. */
static bool preload_runtimes(const char *soft) {
    char path[PATH_MAX];
    for (size_t i = 0; i < AUDIT_NAMES; i++) {
        if (!audit_names[i].is_runtime ||
            !audit_name_file(audit_names[i].file, soft, path, sizeof path)) {
            continue;
        }
        const char *word = strpbrk(path, " :$") == NULL ? path : audit_names[i].name;
        if (!program_add_variable("LD_PRELOAD", word, ' ', false)) return false;
    }
    /* AddressSanitizer would refuse programs whose first library is not its own. */
    return program_add_variable("ASAN_OPTIONS", "verify_asan_link_order=0", ':', false);
}

const char *hyp_soft_program_audit(const struct hyp_soft_program *program, const char *soft) {
    static char says[PATH_MAX + 200];
    char path[PATH_MAX], tunable[80];
    if (!audit_name_file("libtollens-audit.so", soft, path, sizeof path)) {
        snprintf(says, sizeof says,
                 "libtollens-audit.so is not beside %s: LD_LIBRARY_PATH alone leads to the soft "
                 "device, which a RPATH precedes, and static CUDA runtimes are refused",
                 soft);
        return says;
    }
    if (strpbrk(path, ":$") != NULL) {
        snprintf(says, sizeof says,
                 "the loader cannot find %s, because LD_AUDIT separates paths at : and expands $: "
                 "LD_LIBRARY_PATH alone leads to the soft device",
                 path);
        return says;
    }
    /* What the user sets follows, and counts. */
    snprintf(tunable, sizeof tunable, "glibc.rtld.optional_static_tls=%lu", program->tls_bytes);
    const bool done = setenv("TOLLENS_SOFT_LIBRARY", soft, 1) == 0 &&
                      program_add_variable("LD_AUDIT", path, ':', true) &&
                      program_add_variable("GLIBC_TUNABLES", tunable, ':', true) &&
                      (!PRELOADS || preload_runtimes(soft));
    return done ? "" : "out of memory";
}

/* ---- doctor ---- */

static void program_say_paths(const struct audit_elf *elf) {
    static const struct {
        int64_t tag;
        const char *name;
    } tags[] = {{DT_RPATH, "RPATH"}, {DT_RUNPATH, "RUNPATH"}};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        const char *text = audit_elf_dynamic(elf, tags[i].tag, 0);
        if (text != NULL)
            hyp_command_say("  %s: %s (the libraries below are replaced in it too)\n", tags[i].name,
                            text);
    }
}

static void program_say_runtime(const struct audit_elf *elf) {
    const char *name = NULL;
    bool has_shared = false;
    for (unsigned i = 0; (name = audit_elf_dynamic(elf, DT_NEEDED, i)) != NULL; i++) {
        if (strncmp(name, "libcudart.so", 12) != 0) continue;
        hyp_command_say("  CUDA runtime: shared, %s\n", name);
        has_shared = true;
    }
    switch (audit_elf_runtime(elf)) {
    case AUDIT_RUNTIME_NAMED:
        hyp_command_say("  CUDA runtime: static; its functions go to the libcudart below\n");
        break;
    case AUDIT_RUNTIME_STRIPPED:
        hyp_command_say("  CUDA runtime: static and without names, so its calls are refused; link "
                        "it with\n  -cudart shared, or do not strip it\n");
        break;
    default:
        if (!has_shared)
            hyp_command_say("  CUDA runtime: none in this file; libraries may bring "
                            "one\n");
    }
}

/* What stands in for each library. A name may be one of two of the same file. */
static void program_say_replaced(const char *soft) {
    char path[PATH_MAX];
    hyp_command_say("The program and its children get these libraries, wherever they look:\n");
    for (size_t i = 0; i < AUDIT_NAMES; i++) {
        const bool is_there = audit_name_file(audit_names[i].file, soft, path, sizeof path);
        hyp_command_say("  %-18s %s%s\n", audit_names[i].name,
                        is_there ? path : "not replaced: there is no ",
                        is_there                      ? ""
                        : audit_names[i].file != NULL ? audit_names[i].file
                                                      : soft);
    }
}

int hyp_soft_program_doctor(const char *word, const char *soft) {
    struct hyp_soft_program program;
    struct stat status;
    struct audit_elf elf;
    char library[PATH_MAX];
    hyp_soft_program_read(word, &program);
    if (program.path[0] == '\0')
        return hyp_command_complain("doctor: there is no program %s", word);
    if (realpath(soft, library) == NULL)
        return hyp_command_complain("doctor: the soft device %s cannot be read", soft);
    if (program.script[0] != '\0') hyp_command_say("script: %s\n", program.script);
    const char *bytes = program_map(program.path, &status);
    if (bytes == NULL) return hyp_command_complain("doctor: %s cannot be read", program.path);
    hyp_command_say("program: %s\n", program.path);
    if (audit_elf_open(&elf, bytes, (size_t)status.st_size)) {
        program_say_paths(&elf);
        program_say_runtime(&elf);
    } else {
        hyp_command_say("  it is no program of this processor\n");
    }
    munmap((void *)(uintptr_t)bytes, (size_t)status.st_size);
    if (program.refusal[0] != '\0') {
        hyp_command_say("tollens soft refuses it: %s\n", program.refusal);
        return HYP_EXIT_ERROR;
    }
    const char *says = hyp_soft_program_audit(&program, library);
    if (says[0] != '\0') {
        hyp_command_say("%s\n", says);
        return HYP_EXIT_ERROR;
    }
    program_say_replaced(library);
    return HYP_EXIT_OK;
}
