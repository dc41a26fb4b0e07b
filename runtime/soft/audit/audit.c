/*
 * The audit library of `tollens soft` (LD_AUDIT, rtld-audit(7)): it decides which libraries a
 * program and its children get, whatever a RPATH, a RUNPATH or an absolute path says, and sends the
 * functions of a CUDA runtime that was linked into an object to our libcudart.
 *
 * la_objsearch replaces libraries by name. la_objopen runs when an object is mapped, before
 * its constructors, which register device code: each function of the object that our libcudart
 * exports becomes a jump to it. Our libcudart is preloaded. Objects that the loader opens before
 * it, the program among them, wait. Which of the two, the names tell: the object gets the one that
 * exports more of its functions.
 *
 * The loader holds its lock during all of these calls. It loads this library into a namespace of
 * its own, where the library uses the C library alone. If an object cannot be redirected, stderr
 * gets a sentence; the driver then refuses the object's undocumented calls, and counts them.
 */
#include "audit/audit_elf.h"
#include "audit/audit_names.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

enum { WAITING_MAX = 64 };

/* What of the list is replaced. */
static struct replacement {
    char path[PATH_MAX];     /* "": nothing is there */
    char original[PATH_MAX]; /* the last path that the program asked for */
    bool is_open;
    uintptr_t base; /* where it is mapped */
} replacements[AUDIT_NAMES];

static struct exported {
    const char *name;
    uintptr_t address[AUDIT_NAMES]; /* in each runtime; 0: it lacks the function */
} * exported;                       /* sorted; NULL until all runtimes are mapped */
static size_t exported_count;

static const struct link_map *waiting[WAITING_MAX]; /* opened before all runtimes were */
static size_t waiting_count;
static bool has_begun; /* the program runs, so no further library will be preloaded */

/* One write per sentence, so that processes do not mix theirs. */
__attribute__((format(printf, 1, 2))) static void audit_say(const char *format, ...) {
    char text[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "tollens soft: %s\n", text);
}

/* Maps an object's file. What is no file, such as a folder, cannot be mapped. It calls no fstat,
 * which glibc before 2.33 lacks: packages run there, and this library has no other beside it. */
static bool audit_open(const char *path, struct audit_elf *elf) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const off_t size = file >= 0 ? lseek(file, 0, SEEK_END) : -1;
    void *bytes = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (file >= 0) close(file);
    if (bytes == MAP_FAILED) return false;
    if (audit_elf_open(elf, bytes, (size_t)size)) return true;
    munmap(bytes, (size_t)size);
    return false;
}

static void audit_close(const struct audit_elf *elf) {
    munmap((void *)(uintptr_t)elf->bytes, elf->size);
}

static int exported_order(const void *left, const void *right) {
    return strcmp(((const struct exported *)left)->name, ((const struct exported *)right)->name);
}

static const struct exported *exported_find(const char *name) {
    const struct exported key = {.name = name};
    if (strncmp(name, "cuda", 4) != 0 && strncmp(name, "__cuda", 6) != 0) return NULL; /* most */
    return bsearch(&key, exported, exported_count, sizeof key, exported_order);
}

/* Writes the functions that the runtime of a row exports to the array, and returns their number. If
 * rows is NULL, it counts them only. The names point into the file, which is therefore kept mapped.
 */
static size_t exported_add(size_t row, const struct audit_elf *elf, struct exported *rows) {
    struct audit_cursor at = {0};
    struct audit_function function;
    size_t count = 0;
    while (audit_elf_function(elf, &at, &function)) {
        if (!function.is_defined || !function.is_exported) continue;
        if (rows != NULL) {
            rows[count] = (struct exported){.name = function.name};
            rows[count].address[row] = replacements[row].base + function.address;
        }
        count++;
    }
    return count;
}

/* Makes one row of all rows of a name, which are beside each other. */
static size_t exported_merge(struct exported *rows, size_t count) {
    size_t kept = 0;
    qsort(rows, count, sizeof *rows, exported_order);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || strcmp(rows[kept - 1].name, rows[i].name) != 0) {
            rows[kept++] = rows[i];
            continue;
        }
        for (size_t row = 0; row < AUDIT_NAMES; row++) {
            if (rows[i].address[row] != 0) rows[kept - 1].address[row] = rows[i].address[row];
        }
    }
    return kept;
}

/* Reads the functions of all runtimes, once they are mapped. */
static void exported_read(void) {
    struct audit_elf elves[AUDIT_NAMES] = {{0}};
    size_t count = 0, used = 0;
    for (size_t row = 0; row < AUDIT_NAMES; row++) {
        if (!replacements[row].is_open || !audit_open(replacements[row].path, &elves[row]))
            continue;
        count += exported_add(row, &elves[row], NULL);
    }
    struct exported *rows = count > 0 ? calloc(count, sizeof *rows) : NULL;
    if (rows == NULL) return;
    for (size_t row = 0; row < AUDIT_NAMES; row++) {
        if (elves[row].bytes != NULL) used += exported_add(row, &elves[row], rows + used);
    }
    assert(used == count);
    exported_count = exported_merge(rows, count);
    exported = rows;
}

/* The row of the runtime that exports the most functions of an object, the newest first. */
static size_t choose_runtime(const struct audit_elf *elf) {
    struct audit_cursor at = {0};
    struct audit_function function;
    size_t counts[AUDIT_NAMES] = {0}, best = AUDIT_NAMES;
    while (audit_elf_function(elf, &at, &function)) {
        const struct exported *ours = function.is_defined ? exported_find(function.name) : NULL;
        for (size_t row = 0; ours != NULL && row < AUDIT_NAMES; row++)
            counts[row] += ours->address[row] != 0;
    }
    for (size_t row = 0; row < AUDIT_NAMES; row++) {
        if (counts[row] > 0 && (best == AUDIT_NAMES || counts[row] > counts[best])) best = row;
    }
    return best;
}

#if defined(__x86_64__)
/* jmp [rip + 0], and the address. */
enum { JUMP_BYTES = 14 };
static void write_jump(unsigned char *at, uintptr_t to) {
    static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &to, sizeof to);
}
#elif defined(__aarch64__)
/* bti c; ldr x16, [pc + 8]; br x16; and the address. */
enum { JUMP_BYTES = 20 };
static void write_jump(unsigned char *at, uintptr_t to) {
    static const uint32_t jump[3] = {0xd503245fu, 0x58000050u, 0xd61f0200u};
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &to, sizeof to);
    __builtin___clear_cache((char *)at, (char *)at + JUMP_BYTES);
}
#endif

/* The address in the runtime of what an object's function becomes, in a segment. 0: it stays. */
static uintptr_t jump_target(const struct audit_function *function, size_t row,
                             const struct audit_segment *segment) {
    if (!function->is_defined || function->bytes < JUMP_BYTES ||
        function->address < segment->address ||
        function->address - segment->address > segment->file_bytes - JUMP_BYTES) {
        return 0;
    }
    const struct exported *ours = exported_find(function->name);
    return ours != NULL ? ours->address[row] : 0;
}

/* Writes the jumps of one segment, whose pages are writable only meanwhile. They stay executable: a
 * system that forbids what is both then refuses at once, not when they are to be as they were.
 * Returns 0 or what errno was, negative if the pages are no longer what they were. */
static int redirect_segment(const struct audit_elf *elf, uintptr_t base, size_t row,
                            const struct audit_segment *segment) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (base + segment->address) & ~(page - 1);
    const size_t bytes = base + segment->address + segment->file_bytes - first;
    const int protection = ((segment->flags & PF_R) != 0 ? PROT_READ : 0) |
                           ((segment->flags & PF_W) != 0 ? PROT_WRITE : 0) | PROT_EXEC;
    struct audit_cursor at = {0};
    struct audit_function function;
    if (segment->file_bytes < JUMP_BYTES) return 0;
    if (mprotect((void *)first, bytes, protection | PROT_WRITE) != 0) return errno;
    while (audit_elf_function(elf, &at, &function)) {
        const uintptr_t target = jump_target(&function, row, segment);
        if (target != 0) write_jump((unsigned char *)(base + function.address), target);
    }
    return mprotect((void *)first, bytes, protection) == 0 ? 0 : -errno;
}

static void redirect_functions(const struct audit_elf *elf, uintptr_t base, const char *path,
                               size_t row) {
    struct audit_segment segment;
    for (uint64_t i = 0; audit_elf_segment(elf, i, &segment); i++) {
        if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
        const int error = redirect_segment(elf, base, row, &segment);
        if (error == 0) continue;
        audit_say("%s: the pages of its static CUDA runtime may not be changed (mprotect: %s); "
                  "link it with -cudart shared",
                  path, strerror(error < 0 ? -error : error));
        if (error < 0) _exit(2); /* its code could now be overwritten */
        return;
    }
}

/* Looks for a CUDA runtime in an object and redirects it. */
static void audit_object(const struct link_map *map) {
    const char *path = map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    char name[PATH_MAX] = "";
    struct audit_elf elf;
    if (!audit_open(path, &elf)) return; /* the kernel's own object has no file */
    const enum audit_runtime kind = audit_elf_runtime(&elf);
    if (kind != AUDIT_RUNTIME_NONE && realpath(path, name) == NULL)
        snprintf(name, sizeof name, "%s", path);
    if (kind == AUDIT_RUNTIME_STRIPPED) {
        /* A library may never be called, as most of those of a framework: where it is, the driver
         * refuses the call and names it. */
        if (map->l_name[0] != '\0') goto out;
        audit_say("%s has device code and a CUDA runtime whose functions have no names: its CUDA "
                  "calls are refused; link it with -cudart shared, or do not strip it",
                  name);
    } else if (kind == AUDIT_RUNTIME_NAMED) {
        const size_t row = exported != NULL ? choose_runtime(&elf) : AUDIT_NAMES;
        if (row < AUDIT_NAMES) {
            redirect_functions(&elf, map->l_addr, name, row);
        } else {
            audit_say("%s: its static CUDA runtime is not redirected, because no libcudart of "
                      "tollens is loaded: LD_PRELOAD must stay as tollens soft sets it",
                      name);
        }
    }
out:
    audit_close(&elf);
}

static void audit_waiting(void) {
    for (size_t i = 0; i < waiting_count; i++) audit_object(waiting[i]);
    waiting_count = 0;
}

/* The row of our runtime that is being opened; AUDIT_NAMES: it is none. */
static size_t runtime_row(const char *path) {
    size_t row = 0;
    while (row < AUDIT_NAMES && !(audit_names[row].is_runtime && path[0] != '\0' &&
                                  strcmp(path, replacements[row].path) == 0)) {
        row++;
    }
    return row;
}

static bool all_runtimes_open(void) {
    for (size_t row = 0; row < AUDIT_NAMES; row++) {
        const bool is_expected = audit_names[row].is_runtime && replacements[row].path[0] != '\0';
        if (is_expected && !replacements[row].is_open) return false;
    }
    return true;
}

EXPORT unsigned la_version(unsigned version) {
    const char *soft = getenv("TOLLENS_SOFT_LIBRARY"),
               *toolchain = getenv("TOLLENS_SOFT_TOOLCHAIN");
    const bool has_compilers = toolchain == NULL || strcmp(toolchain, "off") != 0;
    if (soft == NULL) return 0; /* the loader goes on without this library */
    for (size_t row = 0; row < AUDIT_NAMES; row++) {
        struct replacement *one = &replacements[row];
        if ((audit_names[row].is_compiler && !has_compilers) ||
            !audit_name_file(audit_names[row].file, soft, one->path, sizeof one->path)) {
            one->path[0] = '\0';
        }
    }
    return version < LAV_CURRENT ? version : LAV_CURRENT; /* nothing here differs between them */
}

/* Whether a replacement requests the library that it replaces, as our NVRTC requests the real one.
 * It requests either /dev/null/NAME, which is no file and means the library that the program
 * requested, or the path of a file. A bare NAME would find the replacement itself. The loader sets
 * the cookie of an object to its link_map. */
static bool asks_for_original(const uintptr_t *cookie, const struct replacement *replacement) {
    const struct link_map *asker = (const struct link_map *)*cookie;
    return asker->l_name != NULL && strcmp(asker->l_name, replacement->path) == 0;
}

EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
    const char *slash = strrchr(name, '/'), *last = slash != NULL ? slash + 1 : name;
    for (size_t row = 0; flag == LA_SER_ORIG && row < AUDIT_NAMES; row++) {
        struct replacement *one = &replacements[row];
        if (strcmp(last, audit_names[row].name) != 0 || one->path[0] == '\0') continue;
        if (asks_for_original(cookie, one)) {
            const bool is_named = strncmp(name, "/dev/null/", 10) == 0;
            return is_named && one->original[0] != '\0' ? one->original : (char *)(uintptr_t)name;
        }
        /* A path is worth more than a name that some other file may have as well. */
        if (slash != NULL || one->original[0] == '\0')
            snprintf(one->original, sizeof one->original, "%s", name);
        return one->path;
    }
    return (char *)(uintptr_t)name;
}

EXPORT unsigned la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie) {
    (void)cookie;
    const size_t row = lmid == LM_ID_BASE ? runtime_row(map->l_name) : AUDIT_NAMES;
    if (row < AUDIT_NAMES) {
        replacements[row].is_open = true;
        replacements[row].base = map->l_addr;
        if (exported == NULL && all_runtimes_open()) {
            exported_read();
            if (exported != NULL) audit_waiting();
        }
    } else if (exported != NULL || has_begun || waiting_count == WAITING_MAX) {
        audit_object(map);
    } else {
        waiting[waiting_count++] = map;
    }
    return 0; /* no bindings are of interest */
}

EXPORT void la_preinit(uintptr_t *cookie) {
    (void)cookie;
    has_begun = true;
    audit_waiting();
}
