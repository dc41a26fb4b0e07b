/*
 * Cases: reading, loading, launching, and the processes that run them.
 */
#include "case.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CASE_SECONDS = 20, PROCESSES_MAX = 32 };

bool case_open(struct case_device *device, const char *driver) {
    memset(device, 0, sizeof *device);
    if (!table_device_open(&device->driver, driver)) return false;
#define CASE_FIND(name, result, parameters)                                                        \
    {                                                                                              \
        void *found = dlsym(device->driver.library, #name);                                        \
        memcpy(&device->name, &found, sizeof found);                                               \
    }
    CASE_FUNCTIONS(CASE_FIND)
#undef CASE_FIND
    return true;
}

const char *case_value(const struct case_line *line, const char *key) {
    size_t length = strlen(key);
    for (unsigned i = 0; i < line->count; i++) {
        if (strncmp(line->word[i], key, length) == 0 && line->word[i][length] == '=') {
            return line->word[i] + length + 1;
        }
    }
    return NULL;
}

bool case_has(const struct case_line *line, const char *word) {
    for (unsigned i = 0; i < line->count; i++) {
        if (strcmp(line->word[i], word) == 0) return true;
    }
    return false;
}

unsigned case_numbers(const char *text, long long *numbers, unsigned most) {
    unsigned count = 0;
    while (text != NULL && *text != '\0' && count < most) {
        char *end = NULL;
        numbers[count++] = strtoll(text, &end, 0);
        text = *end == ',' ? end + 1 : NULL;
    }
    return count;
}

void case_say(struct case_line *line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line->said + line->length, CASE_SAID - line->length, format, arguments);
    va_end(arguments);
    line->length += (size_t)length;
    if (line->length > CASE_SAID - 1) line->length = CASE_SAID - 1;
}

bool case_fail(struct case_line *line, const char *call, CUresult code) {
    case_say(line, "%s%s %d", line->length > 0 ? " " : "", call, (int)code);
    return false;
}

CUfunction case_load(struct case_device *device, struct case_line *line, const char *text) {
    struct table_device *driver = &device->driver;
    if (text == NULL) {
        case_say(line, "no memory");
        return NULL;
    }
    for (unsigned i = 0; i < CASE_MODULES; i++) {
        const struct case_module *module = &device->modules[i];
        if (module->text != NULL && strcmp(module->text, text) == 0) return module->function;
    }
    char log[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    struct case_module *module = &device->modules[device->next++ % CASE_MODULES];
    if (module->text != NULL) {
        driver->cuModuleUnload(module->module);
        free(module->text);
        module->text = NULL;
    }
    CUresult code = driver->cuModuleLoadDataEx(&module->module, text, 2, options, values);
    if (code != CUDA_SUCCESS) {
        case_fail(line, "load", code);
        fprintf(stderr, "%s\n%s\n", log, text);
        return NULL;
    }
    code = driver->cuModuleGetFunction(&module->function, module->module, "k");
    if (code != CUDA_SUCCESS) {
        case_fail(line, "function", code);
        return NULL;
    }
    module->text = strdup(text);
    return module->function;
}

bool case_launch(struct case_device *device, struct case_line *line, CUfunction function,
                 unsigned blocks, unsigned threads, unsigned shared, CUdeviceptr data,
                 void *second) {
    struct table_device *driver = &device->driver;
    void *parameters[] = {&data, second};
    CUresult code = CUDA_SUCCESS;
    if (shared > 48u << 10) {
        code = driver->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          (int)shared);
    }
    if (code != CUDA_SUCCESS) return case_fail(line, "attribute", code);
    code = driver->cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, NULL, parameters,
                                  NULL);
    if (code != CUDA_SUCCESS) {
        line->lost = true;
        return case_fail(line, "launch", code);
    }
    code = driver->cuCtxSynchronize();
    if (code == CUDA_SUCCESS) return true;
    line->lost = true;
    return case_fail(line, "synchronize", code);
}

void case_run(struct case_device *device, struct case_line *line, const char *text, char *said) {
    memset(line, 0, sizeof *line);
    line->said = said;
    said[0] = '\0';
    snprintf(line->text, sizeof line->text, "%s", text);
    char *rest = NULL;
    for (char *word = strtok_r(line->text, " ", &rest); word != NULL && line->count < CASE_WORDS;
         word = strtok_r(NULL, " ", &rest)) {
        line->word[line->count++] = word;
    }
    if (line->count < 3) {
        case_say(line, "too few words");
        return;
    }
    static const char *const boxes[] = {"load", "store", "reduce", "prefetch"};
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        size_t length = strlen(boxes[i]);
        char behind = strncmp(line->word[0], boxes[i], length) == 0 ? line->word[0][length] : 'x';
        if (behind == '\0' || (behind == '.' && i == 2)) {
            case_box(device, line);
            return;
        }
    }
    case_texture(device, line);
}

/* ---- processes ---- */

enum state { WAITING, RUNNING, DONE };

struct plan {
    atomic_size_t next;
    char message[512];
    struct {
        _Atomic int state;
        _Atomic pid_t process;
    } cases[];
};

/* A run of elements begins with a space. */
static void case_trim(char *said) {
    if (said[0] == ' ') memmove(said, said + 1, strlen(said));
}

static void case_be_child(const char *driver, char **lines, size_t count, struct plan *plan,
                          char *results) {
    static struct case_device device;
    static struct case_line line;
    alarm(CASE_SECONDS);
    if (!case_open(&device, driver)) {
        snprintf(plan->message, sizeof plan->message, "%s", device.driver.message);
        _exit(3);
    }
    while (!line.lost) {
        size_t i = atomic_fetch_add(&plan->next, 1);
        if (i >= count) _exit(0);
        alarm(CASE_SECONDS);
        plan->cases[i].process = getpid();
        plan->cases[i].state = RUNNING;
        case_run(&device, &line, lines[i], results + i * CASE_SAID);
        case_trim(results + i * CASE_SAID);
        plan->cases[i].state = DONE;
    }
    /* The driver cleans up the rest of the context. */
    _exit(4);
}

static pid_t case_start(const char *driver, char **lines, size_t count, struct plan *plan,
                        char *results) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) case_be_child(driver, lines, count, plan, results);
    return child;
}

static void note_death(struct plan *plan, size_t count, pid_t child, int status, char *results) {
    for (size_t i = 0; i < count; i++) {
        if (plan->cases[i].process != child || plan->cases[i].state != RUNNING) continue;
        snprintf(results + i * CASE_SAID, CASE_SAID, "killed by signal %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        plan->cases[i].state = DONE;
    }
}

bool case_run_all(const char *driver, char **lines, size_t count, unsigned processes,
                  unsigned seconds, char *results, char *message, size_t bytes) {
    size_t size = sizeof(struct plan) + count * sizeof(((struct plan *)0)->cases[0]);
    struct plan *plan = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t all = count * CASE_SAID;
    char *shared = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (plan == MAP_FAILED || shared == MAP_FAILED) {
        snprintf(message, bytes, "no memory for %zu cases", count);
        return false;
    }
    unsigned running = 0;
    if (seconds == 0) plan->next = count; /* before a process could begin with a case */
    while (running < processes && running < PROCESSES_MAX && running < count) {
        if (case_start(driver, lines, count, plan, shared) < 0) break;
        running++;
    }
    time_t begin = time(NULL);
    while (running > 0) {
        int status = 0;
        pid_t child = waitpid(-1, &status, WNOHANG);
        if (child < 0) break;
        if (time(NULL) - begin >= (time_t)seconds) plan->next = count;
        if (child == 0) {
            usleep(1000);
            continue;
        }
        running--;
        note_death(plan, count, child, status, shared);
        bool again = WIFSIGNALED(status) || WEXITSTATUS(status) == 4;
        if (again && plan->next < count && case_start(driver, lines, count, plan, shared) > 0) {
            running++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (plan->cases[i].state == WAITING) strcpy(shared + i * CASE_SAID, "not run");
    }
    memcpy(results, shared, all);
    bool ok = plan->message[0] == '\0';
    snprintf(message, bytes, "%s", plan->message);
    munmap(plan, size);
    munmap(shared, all);
    return ok;
}

/* ---- reading ---- */

struct lines {
    char **line;
    size_t count;
};

static void case_add(struct lines *lines, const char *text) {
    char **more = realloc(lines->line, (lines->count + 1) * sizeof *more);
    if (more == NULL) abort();
    lines->line = more;
    lines->line[lines->count++] = strdup(text);
}

/* Expands the first {a|b} of a line, and the rest of each recursively. */
static void case_expand(struct lines *lines, const char *text) {
    const char *open = strchr(text, '{'), *close = open != NULL ? strchr(open, '}') : NULL;
    if (close == NULL) {
        case_add(lines, text);
        return;
    }
    for (const char *at = open + 1; at <= close;) {
        char one[CASE_LINE];
        size_t length = strcspn(at, "|}");
        snprintf(one, sizeof one, "%.*s%.*s%s", (int)(open - text), text, (int)length, at,
                 close + 1);
        case_expand(lines, one);
        at += length + 1;
    }
}

char **case_read(const char *path, size_t *count) {
    struct lines lines = {0};
    char text[CASE_LINE];
    FILE *file = fopen(path, "r");
    if (file == NULL) return NULL;
    while (fgets(text, sizeof text, file) != NULL) {
        text[strcspn(text, "\n")] = '\0';
        char *said = strstr(text, " : ");
        if (said != NULL) *said = '\0';
        if (text[0] != '\0' && text[0] != '#') case_expand(&lines, text);
    }
    fclose(file);
    *count = lines.count;
    return lines.line;
}
