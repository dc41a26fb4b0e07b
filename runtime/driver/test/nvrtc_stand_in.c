/*
 * A stand-in for NVRTC, for tests: a program's source is PTX, and so is what it compiles to. The
 * log has the options that arrived, a line each. Machine code is not made: an option with sm_ is
 * refused, as is a cubin. As the real one, it asks the driver for a table that is not documented,
 * and goes on without it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, OUT_OF_MEMORY = 1, INVALID_PROGRAM = 4, INVALID_OPTION = 5 };

struct program {
    char ptx[4096], log[1024];
};

EXPORT int nvrtcVersion(int *major, int *minor);
EXPORT int nvrtcCreateProgram(struct program **program, const char *source, const char *name,
                              int count, const char *const *headers, const char *const *names);
EXPORT int nvrtcDestroyProgram(struct program **program);
EXPORT int nvrtcCompileProgram(struct program *program, int count, const char *const *options);
EXPORT int nvrtcGetPTXSize(struct program *program, size_t *bytes);
EXPORT int nvrtcGetPTX(struct program *program, char *ptx);
EXPORT int nvrtcGetCUBINSize(struct program *program, size_t *bytes);
EXPORT int nvrtcGetCUBIN(struct program *program, char *cubin);
EXPORT int nvrtcGetProgramLogSize(struct program *program, size_t *bytes);
EXPORT int nvrtcGetProgramLog(struct program *program, char *log);
EXPORT const char *nvrtcGetErrorString(int result);

int nvrtcVersion(int *major, int *minor) {
    *major = 1;
    *minor = 2;
    return SUCCESS;
}

int nvrtcCreateProgram(struct program **program, const char *source, const char *name, int count,
                       const char *const *headers, const char *const *names) {
    (void)name, (void)count, (void)headers, (void)names;
    *program = calloc(1, sizeof **program);
    if (*program == NULL) return OUT_OF_MEMORY;
    snprintf((*program)->ptx, sizeof(*program)->ptx, "%s", source);
    return SUCCESS;
}

int nvrtcDestroyProgram(struct program **program) {
    free(*program);
    *program = NULL;
    return SUCCESS;
}

static void ask_driver(void) {
    static const char id[16] = "not documented";
    int (*function)(const void **, const char *) = NULL;
    const void *table = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *address = driver != NULL ? dlsym(driver, "cuGetExportTable") : NULL;
    memcpy(&function, &address, sizeof function);
    if (function != NULL) function(&table, id);
}

int nvrtcCompileProgram(struct program *program, int count, const char *const *options) {
    int result = SUCCESS;
    ask_driver();
    program->log[0] = '\0';
    for (int i = 0; i < count; i++) {
        const size_t used = strlen(program->log);
        snprintf(program->log + used, sizeof program->log - used, "%s\n", options[i]);
        if (strstr(options[i], "sm_") != NULL) result = INVALID_OPTION;
    }
    return result;
}

int nvrtcGetPTXSize(struct program *program, size_t *bytes) {
    *bytes = strlen(program->ptx) + 1;
    return SUCCESS;
}

int nvrtcGetPTX(struct program *program, char *ptx) {
    strcpy(ptx, program->ptx);
    return SUCCESS;
}

int nvrtcGetCUBINSize(struct program *program, size_t *bytes) {
    *bytes = 0;
    return program != NULL ? SUCCESS : INVALID_PROGRAM;
}

int nvrtcGetCUBIN(struct program *program, char *cubin) {
    (void)program, (void)cubin;
    return INVALID_PROGRAM;
}

int nvrtcGetProgramLogSize(struct program *program, size_t *bytes) {
    *bytes = strlen(program->log) + 1;
    return SUCCESS;
}

int nvrtcGetProgramLog(struct program *program, char *log) {
    strcpy(log, program->log);
    return SUCCESS;
}

const char *nvrtcGetErrorString(int result) {
    return result == SUCCESS ? "the stand-in succeeded" : "the stand-in failed";
}
