/*
 * H1: valid PTX modules load, and invalid ones are rejected.
 *
 * `tollens explain H1` prints the text below.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/clock.h"
#include "attack/module_loads.h"
#include "files/packed_file.h"
#include "tollens/plain_text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HYP_WORDS(
    1,
    .claim = "Every valid PTX text loads as a module, for every target that the device supports, "
             "and every entry point is found in it. Invalid PTX is rejected, with the reason.",
    .prediction = "0 violations: all PTX of this project loads, and all broken and truncated PTX "
                  "is rejected with the JIT's log in the message.",
    .falsified_if = "a valid text is rejected, a module or kernel is NULL after success, an "
                    "invalid text loads, or the message of a rejection lacks the JIT's log.",
    .method =
        "Load each file of fixtures/ptx, in four processes and several at once, look up all its "
        "kernels, and expect a rejection if its target is above the device's or its language newer "
        "than the driver's; a quick run on a GPU leaves out those above 96 KiB. Load a "
        "kernel for each of ten targets, sm_70 to sm_120. Cut each text inside its bodies. "
        "Compare the message of a rejection with the log of the driver. Insert a NUL. Look "
        "up names that do not exist. Read and write variables that a kernel changes.",
    .control = "After the broken and the truncated texts, a valid module must load in the same "
               "context and its kernel must compute. A driver that rejects everything fails here.",
    .confounders = "The driver's JIT cache can answer without compiling. Each valid text "
                   "therefore gets a unique comment, so that no two runs load the same bytes.")

/* ---- files ----------------------------------------------------------------------------------- */

enum { FILES_MAX = 256, PATH_BYTES = 300, SHARES = 4 };

struct file {
    char path[PATH_BYTES]; /* below the root */
    off_t bytes;
};
struct files {
    size_t count;
    struct file all[FILES_MAX]; /* sorted by name */
};

static int modules_by_name(const void *a, const void *b) {
    const struct file *one = a, *other = b;
    return strcmp(one->path, other->path);
}

/* The longest first; of equal ones by name, so that all processes have one order. */
static int modules_by_bytes(const void *a, const void *b) {
    const struct file *one = a, *other = b;
    if (one->bytes != other->bytes) return one->bytes < other->bytes ? 1 : -1;
    return modules_by_name(a, b);
}

/* Whether a file is too large for a quick run. A GPU's JIT needs seconds for a text of a megabyte,
 * and compiles those of one context one after the other: 141 texts took 43 s on an H200. */
static bool is_too_long(const struct hyp_attack *attack, off_t bytes) {
    return !attack->session.full && attack->kind != HYP_DEVICE_SOFT && bytes > 96 << 10;
}

/* The length of a name without ".ptx", or ".ptx.xz" of what is kept packed; 0: it is no PTX. */
static size_t name_length(const char *name) {
    static const char *const endings[] = {".ptx.xz", ".ptx"};
    const size_t length = strlen(name);
    for (size_t i = 0; i < 2; i++) {
        const size_t end = strlen(endings[i]);
        if (length > end && strcmp(name + length - end, endings[i]) == 0) return length - end;
    }
    return 0;
}

/* Lists the PTX files of a folder below the root, by their names without ".xz". */
static struct files *list_files(struct hyp_attack *attack, const char *folder) {
    static struct files files;
    char whole[4600];
    files.count = 0;
    const char *root = hyp_session_root();
    snprintf(whole, sizeof whole, "%s/%s", root != NULL ? root : "", folder);
    DIR *open = opendir(whole);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
        const int length = (int)name_length(entry->d_name);
        if (length == 0 || files.count == FILES_MAX) continue;
        struct file *file = &files.all[files.count];
        char path[5000];
        snprintf(path, sizeof path, "%s/%.*s.ptx", whole, length, entry->d_name);
        file->bytes = (off_t)hyp_packed_bytes(path);
        if (is_too_long(attack, file->bytes)) continue;
        snprintf(file->path, sizeof file->path, "%s/%.*s.ptx", folder, length, entry->d_name);
        files.count++;
    }
    if (open != NULL) closedir(open);
    qsort(files.all, files.count, sizeof files.all[0], modules_by_name);
    HYP_CHECK(attack, files.count > 0, "there are no PTX files in %s", whole);
    return &files;
}

/* Reads a text and appends a unique comment. The caller frees it. */
static char *read_fresh(struct hyp_attack *attack, const char *path, size_t *bytes) {
    char *text = hyp_attack_file(attack, path, bytes);
    if (text == NULL) return NULL;
    char *longer = realloc(text, *bytes + 64);
    cr_assert(longer != NULL, "no memory for %s", path);
    *bytes +=
        (size_t)sprintf(longer + *bytes, "\n// %016llx%016llx\n",
                        (unsigned long long)hyp_random(attack), (unsigned long long)hyp_clock_ns());
    return longer;
}

/* ---- what must load -------------------------------------------------------------------------- */

/* Writes the name of the text's next kernel and returns the text after it; NULL if there is
 * none. */
static const char *modules_next_entry(const char *text, char *name, size_t bytes) {
    const char *at = strstr(text, ".entry");
    if (at == NULL) return NULL;
    at += strlen(".entry");
    at += strspn(at, " \t\r\n");
    size_t length = strcspn(at, " \t\r\n(");
    snprintf(name, bytes, "%.*s", (int)length, at);
    return at + length;
}

/* Counts the parameters of the entry; text is what follows its name. */
static int count_parameters(const char *text) {
    int count = 0;
    size_t end = strcspn(text, "){");
    for (const char *at = text; (at = strstr(at, ".param")) != NULL && at < text + end; at++)
        count++;
    return count;
}

static void find_entries(struct hyp_attack *attack, struct tol_module *module, const char *path,
                         const char *text) {
    char name[256];
    size_t entries = 0;
    struct tol_hdr *lookup = hyp_attack_series(attack, "kernel_lookup");
    for (const char *at = text; (at = modules_next_entry(at, name, sizeof name)) != NULL;
         entries++) {
        struct tol_kernel *kernel = NULL, *again = NULL;
        uint64_t begin = hyp_clock_ns();
        tol_status status = tol_module_kernel(module, name, &kernel);
        tol_hdr_record(lookup, (int64_t)(hyp_clock_ns() - begin));
        if (!hyp_attack_ok(attack, status, name)) continue;
        if (!HYP_CHECK(attack, kernel != NULL, "%s: kernel %s is NULL", path, name)) continue;
        struct tol_kernel_properties known = tol_kernel_properties(kernel);
        HYP_CHECK(attack, strcmp(known.name, name) == 0, "%s: the kernel %s reports the name %s",
                  path, name, known.name);
        HYP_CHECK(attack, known.block_threads_max >= 1, "%s: %s allows no thread per block", path,
                  name);
        HYP_CHECK(attack,
                  known.parameter_count < 0 || known.parameter_count == count_parameters(at),
                  "%s: %s has %d parameters, expected %d", path, name, known.parameter_count,
                  count_parameters(at));
        HYP_CHECK(attack, tol_module_kernel(module, name, &again) == TOL_OK && again == kernel,
                  "%s: a second lookup of %s returned another kernel", path, name);
    }
    HYP_CHECK(attack, entries > 0, "%s has no kernel", path);
}

/* Whether the device can run a text: its target is the device's, or an older one without the suffix
 * that ties it to one capability. PTX ISA, ".target". */
static bool is_for_device(struct hyp_attack *attack, const char *path, const char *text) {
    const int device = tol_context_device(attack->context)->compute_capability;
    const char *name = strstr(text, "\n.target sm_");
    char *suffix = NULL;
    if (!HYP_CHECK(attack, name != NULL, "%s has no .target", path)) return true;
    const long target = strtol(name + strlen("\n.target sm_"), &suffix, 10);
    return *suffix == 'a' ? target == device : target <= device;
}

/* Whether the driver knows a text's language: 8.0 came with CUDA 12.0, and so on to 8.5 with 12.5.
 * PTX ISA, "Release Notes". */
static bool is_for_driver(struct hyp_attack *attack, const char *path, const char *text) {
    const int driver = tol_driver_version(tol_context_driver(attack->context));
    const char *name = strstr(text, ".version ");
    char *end = NULL;
    if (!HYP_CHECK(attack, name != NULL, "%s has no .version", path)) return true;
    const long major = strtol(name + strlen(".version "), &end, 10);
    const long minor = strtol(end + 1, NULL, 10);
    return major < 8 || (major == 8 && 12000 + 10 * minor <= driver);
}

/* Reads the texts of a folder that the device can run and the driver knows; the others must be
 * rejected. */
static size_t read_folder(struct hyp_attack *attack, const struct files *files,
                          struct hyp_module_load *loads, const char **paths) {
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++) {
        struct tol_module *module = NULL;
        size_t bytes = 0;
        char *text = read_fresh(attack, files->all[i].path, &bytes);
        if (text == NULL) continue;
        if (is_for_device(attack, files->all[i].path, text) &&
            is_for_driver(attack, files->all[i].path, text)) {
            paths[count] = files->all[i].path;
            loads[count++] = (struct hyp_module_load){.text = text, .bytes = bytes};
            continue;
        }
        hyp_attack_refused(attack, tol_module_load(attack->context, text, bytes, NULL, &module),
                           TOL_INVALID_MODULE, "", files->all[i].path);
        tol_module_destroy(module);
        free(text);
    }
    return count;
}

/* Keeps every SHARES-th text by length, from number `share` on. */
static void take_share(struct files *files, size_t share) {
    size_t count = 0;
    qsort(files->all, files->count, sizeof files->all[0], modules_by_bytes);
    for (size_t i = share; i < files->count; i += SHARES) files->all[count++] = files->all[i];
    files->count = count;
}

static void load_folder(struct hyp_attack *attack, const char *folder, size_t share) {
    static struct hyp_module_load loads[FILES_MAX];
    const char *paths[FILES_MAX];
    struct files *files = list_files(attack, folder);
    take_share(files, share);
    struct tol_hdr *times = hyp_attack_series(attack, "module_load");
    const size_t count = read_folder(attack, files, loads, paths);
    hyp_module_loads(attack->context, loads, count);
    for (size_t i = 0; i < count; i++) {
        const struct hyp_module_load *load = &loads[i];
        tol_hdr_record(times, (int64_t)load->ns);
        if (HYP_CHECK(attack, load->status == TOL_OK, "%s: %s: %.700s", paths[i],
                      tol_status_name(load->status), load->message) &&
            HYP_CHECK(attack, load->module != NULL, "%s: the module is NULL", paths[i])) {
            find_entries(attack, load->module, paths[i], load->text);
        }
        tol_module_destroy(load->module);
        free((char *)load->text);
        hyp_attack_progress(attack, (double)i / (double)count);
    }
}

static void load_all(struct hyp_attack *attack, size_t share) {
    load_folder(attack, "fixtures/ptx/kernels", share);
    load_folder(attack, "fixtures/ptx/handwritten", share);
}

/* Each in its own process, because a driver compiles the texts of one context one after the other:
 * in one context a full run's texts take an H100 three minutes. */
HYP_ATTACK(h01, every_module_of_the_first_quarter_loads) {
    load_all(attack, 0);
}
HYP_ATTACK(h01, every_module_of_the_second_quarter_loads) {
    load_all(attack, 1);
}
HYP_ATTACK(h01, every_module_of_the_third_quarter_loads) {
    load_all(attack, 2);
}
HYP_ATTACK(h01, every_module_of_the_last_quarter_loads) {
    load_all(attack, 3);
}

/* Targets and the language version that introduced each: PTX ISA, "Release Notes". */
static const struct {
    int target;
    const char *version;
} targets[] = {{70, "6.0"}, {72, "6.1"}, {75, "6.3"}, {80, "7.0"},  {86, "7.1"},
               {87, "7.4"}, {89, "7.8"}, {90, "7.8"}, {100, "8.6"}, {120, "8.7"}};

HYP_ATTACK(h01, every_target_up_to_the_device_loads_and_none_above) {
    struct tol_device device = *tol_context_device(attack->context);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        char text[512], target[16];
        struct tol_module *module = NULL;
        struct tol_kernel *kernel = NULL;
        snprintf(target, sizeof target, "sm_%d", targets[i].target);
        int length =
            snprintf(text, sizeof text,
                     ".version %s\n.target sm_%d\n.address_size 64\n"
                     ".visible .entry nothing() { ret; } // %llx\n",
                     targets[i].version, targets[i].target, (unsigned long long)hyp_random(attack));
        tol_status status = tol_module_load(attack->context, text, (size_t)length, NULL, &module);
        if (targets[i].target > device.compute_capability) {
            hyp_attack_refused(attack, status, TOL_INVALID_MODULE, "", target);
        } else if (hyp_attack_ok(attack, status, target)) {
            HYP_OK(attack, tol_module_kernel(module, "nothing", &kernel));
            HYP_CHECK(attack, kernel != NULL, "%s: the kernel is NULL", target);
        }
        tol_module_destroy(module);
    }
}

/* ---- rejections ------------------------------------------------------------------------------ */

/* The control: the context still loads and computes. */
static void still_works(struct hyp_attack *attack, const char *after) {
    size_t bytes = 0;
    unsigned word = 0;
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    char *text = read_fresh(attack, "fixtures/ptx/kernels/fill.ptx", &bytes);
    unsigned value = (unsigned)hyp_random(attack);
    bool ok = text != NULL &&
              HYP_OK(attack, tol_module_load(attack->context, text, bytes, NULL, &module)) &&
              HYP_OK(attack, tol_module_kernel(module, "fill", &kernel)) &&
              HYP_OK(attack, tol_stream_create(attack->context, NULL, &stream)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, 1, sizeof word, &buffer)) &&
              HYP_OK(attack, tol_launch(stream, kernel, tol_launch_linear(1, 32),
                                        TOL_ARGUMENTS(tol_buffer_address(buffer), value, 1ull))) &&
              HYP_OK(attack, tol_stream_synchronize(stream)) &&
              HYP_OK(attack, tol_buffer_read(buffer, &word, sizeof word));
    if (ok) {
        HYP_CHECK(attack, word == value, "after %s, fill wrote %#x, expected %#x", after, word,
                  value);
    }
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
    tol_module_destroy(module);
    free(text);
}

/* Loads a text by the driver itself, and checks that the runtime's message, which is that of the
 * same text, has each line of the driver's log. */
static void check_log(struct hyp_attack *attack, const char *path, const char *text) {
    enum { LOG_BYTES = 4096 };
    char log[LOG_BYTES] = "", *rest = log;
    CUmodule module = NULL;
    CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)LOG_BYTES};
    if (attack->raw->cuModuleLoadDataEx(&module, text, 2, names, values) == CUDA_SUCCESS) {
        attack->raw->cuModuleUnload(module);
        return;
    }
    log[LOG_BYTES - 1] = '\0';
    tol_plain_text(log); /* as messages are */
    /* The driver may log the same elsewhere (cuLogsCurrent), and the message then has both. */
    const char *own = strstr(tol_message(), "the JIT's log:");
    if (!HYP_CHECK(attack, own != NULL, "%s: the message lacks the JIT's log", path)) return;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (!HYP_CHECK(attack, strstr(own, line) != NULL,
                       "%s: the message lacks a line of the JIT's log, \"%.200s\"", path, line)) {
            return;
        }
    }
}

HYP_ATTACK(h01, broken_ptx_is_refused_with_the_jits_words) {
    struct files *files = list_files(attack, "fixtures/ptx/bad");
    for (size_t i = 0; i < files->count; i++) {
        size_t bytes = 0;
        struct tol_module *module = NULL;
        char *text = hyp_attack_file(attack, files->all[i].path, &bytes);
        if (text == NULL) continue;
        tol_status status = tol_module_load(attack->context, text, bytes, NULL, &module);
        hyp_attack_refused(attack, status, TOL_INVALID_MODULE, "JIT's log", files->all[i].path);
        HYP_CHECK(attack, module == NULL, "%s: rejected, but a module was returned",
                  files->all[i].path);
        if (status == TOL_OK) tol_module_destroy(module);
        if (status == TOL_INVALID_MODULE) check_log(attack, files->all[i].path, text);
        free(text);
        hyp_attack_progress(attack, (double)i / (double)files->count);
    }
    still_works(attack, "broken PTX");
}

/* Draws a place inside a body; a cut between two kernels would leave valid PTX. */
static size_t draw_cut(struct hyp_attack *attack, const char *text, const char *open,
                       const char *close) {
    while (true) {
        const char *cut = open + 1 + hyp_random_below(attack, (uint64_t)(close - open - 1));
        size_t depth = 0;
        for (const char *at = text; at < cut; at++) depth += (size_t)(*at == '{') - (*at == '}');
        if (depth > 0) return (size_t)(cut - text);
    }
}

HYP_ATTACK(h01, truncated_ptx_is_refused) {
    int cuts = attack->session.full ? 8 : 4; /* under each seed, of which there are 8 or 2 */
    struct files *files = list_files(attack, "fixtures/ptx/kernels");
    for (size_t i = 0; i < files->count; i++) {
        size_t bytes = 0;
        char *text = hyp_attack_file(attack, files->all[i].path, &bytes);
        if (text == NULL) continue;
        const char *open = strchr(text, '{'), *close = strrchr(text, '}');
        for (int cut = 0; open != NULL && close > open && cut < cuts; cut++) {
            struct tol_module *module = NULL;
            size_t length = draw_cut(attack, text, open, close);
            tol_status status = tol_module_load(attack->context, text, length, NULL, &module);
            HYP_CHECK(attack, status == TOL_INVALID_MODULE, "%s cut after %zu of %zu bytes: %s: %s",
                      files->all[i].path, length, bytes, tol_status_name(status),
                      status == TOL_OK ? "it loaded" : tol_message());
            if (status == TOL_OK) tol_module_destroy(module);
        }
        free(text);
        hyp_attack_progress(attack, (double)i / (double)files->count);
    }
    still_works(attack, "truncated PTX");
}

HYP_ATTACK(h01, a_nul_inside_is_refused_and_one_behind_is_not) {
    size_t bytes = 0;
    struct tol_module *module = NULL;
    char *text = read_fresh(attack, "fixtures/ptx/handwritten/put.ptx", &bytes);
    if (text == NULL) return;
    for (int turn = 0; turn < 32; turn++) {
        /* Not the last byte: a NUL there is allowed. */
        size_t at = hyp_random_below(attack, bytes - 1);
        char was = text[at];
        text[at] = '\0';
        HYP_REFUSED(attack, tol_module_load(attack->context, text, bytes, NULL, &module),
                    TOL_INVALID_ARGUMENT, "NUL");
        text[at] = was;
    }
    HYP_REFUSED(attack, tol_module_load(attack->context, text, 0, NULL, &module),
                TOL_INVALID_ARGUMENT, "");
    HYP_REFUSED(attack, tol_module_load(attack->context, NULL, bytes, NULL, &module),
                TOL_INVALID_ARGUMENT, "");
    if (HYP_OK(attack, tol_module_load(attack->context, text, bytes + 1, NULL, &module))) {
        tol_module_destroy(module);
    }
    free(text);
}

/* The kernel adds the second variable to the first. */
HYP_ATTACK(h01, variables_have_their_values_and_are_the_kernels) {
    static const char text[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                               ".visible .global .u32 sum[3] = {5, 6, 7};\n"
                               ".visible .global .u32 term[3] = {10, 20, 30};\n"
                               ".visible .entry add() {\n  .reg .b32 %a, %b;\n"
                               "  ld.global.u32 %a, [sum+4];  ld.global.u32 %b, [term+4];\n"
                               "  add.u32 %a, %a, %b;  st.global.u32 [sum+4], %a;  ret;\n}\n";
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_module struct tol_module *module = NULL;
    tol_auto_buffer struct tol_buffer *sum = NULL, *term = NULL;
    struct tol_kernel *kernel = NULL;
    unsigned sums[3] = {0}, terms[3] = {0};
    HYP_NEED(attack, tol_stream_create(attack->context, NULL, &stream));
    HYP_NEED(attack, tol_module_load(attack->context, text, sizeof text - 1, NULL, &module));
    HYP_NEED(attack, tol_module_kernel(module, "add", &kernel));
    HYP_NEED(attack, tol_module_global(module, "sum", &sum));
    HYP_NEED(attack, tol_module_global(module, "term", &term));
    HYP_NEED(attack, tol_buffer_read(term, terms, sizeof terms));
    HYP_CHECK(attack, terms[0] == 10 && terms[1] == 20 && terms[2] == 30,
              "a variable is {%u, %u, %u}, expected {10, 20, 30}", terms[0], terms[1], terms[2]);
    terms[1] = 94;
    HYP_NEED(attack, tol_buffer_write(term, terms, sizeof terms));
    HYP_NEED(attack, tol_launch(stream, kernel, tol_launch_linear(1, 1), TOL_NO_ARGUMENTS));
    HYP_NEED(attack, tol_stream_synchronize(stream));
    HYP_NEED(attack, tol_buffer_read(sum, sums, sizeof sums));
    HYP_CHECK(attack, sums[0] == 5 && sums[1] == 100 && sums[2] == 7,
              "a variable is {%u, %u, %u} after a kernel changed it, expected {5, 100, 7}", sums[0],
              sums[1], sums[2]);
}

HYP_ATTACK(h01, functions_that_are_not_there_are_not_found) {
    static const char *const names[] = {"",     "nope",   "pu",    "putt", "PUT",
                                        "put ", ".entry", "spare", "fill"};
    size_t bytes = 0;
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    char *text = read_fresh(attack, "fixtures/ptx/handwritten/put.ptx", &bytes);
    if (text == NULL) return;
    if (!HYP_OK(attack, tol_module_load(attack->context, text, bytes, NULL, &module))) {
        free(text);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tol_status status = tol_module_kernel(module, names[i], &kernel);
        HYP_CHECK(attack, status == TOL_NOT_FOUND && kernel == NULL,
                  "looking up \"%s\" in put.ptx returned %s", names[i], tol_status_name(status));
        kernel = NULL;
        HYP_OK(attack, tol_module_kernel(module, "put", &kernel));
        HYP_CHECK(attack, kernel != NULL, "put is not found after the lookup of \"%s\"", names[i]);
        kernel = NULL;
    }
    tol_module_destroy(module);
    free(text);
}
