/*
 * Cases: single copies of TMA boxes, and single instructions on textures and surfaces, each a line
 * of words, and a driver's result. fixtures/ptx/cases has the lines and the meaning of the words.
 */
#ifndef SOFT_TABLE_CASE_H
#define SOFT_TABLE_CASE_H

#include "table_device.h"

#include "base/abi.h"

enum { CASE_WORDS = 40, CASE_LINE = 1024, CASE_SAID = 1 << 16 };

/* Functions of the driver that the runtime does not use. */
#define CASE_FUNCTIONS(function)                                                                   \
    function(cuTensorMapEncodeIm2col, CUresult,                                                    \
             (CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,          \
              const cuuint64_t *, const int *, const int *, cuuint32_t, cuuint32_t,                \
              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,                       \
              CUtensorMapL2promotion, CUtensorMapFloatOOBfill))                                    \
        function(cuArray3DCreate_v2, CUresult, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))       \
            function(cuArrayDestroy, CUresult, (CUarray))                                          \
                function(cuMipmappedArrayCreate, CUresult,                                         \
                         (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))          \
                    function(cuMipmappedArrayGetLevel, CUresult,                                   \
                             (CUarray *, CUmipmappedArray, unsigned))                              \
                        function(cuMipmappedArrayDestroy, CUresult, (CUmipmappedArray))            \
                            function(cuMemcpy3D_v2, CUresult, (const CUDA_MEMCPY3D *)) function(   \
                                cuTexObjectCreate, CUresult,                                       \
                                (CUtexObject *, const CUDA_RESOURCE_DESC *,                        \
                                 const CUDA_TEXTURE_DESC *, const CUDA_RESOURCE_VIEW_DESC *))      \
                                function(cuTexObjectDestroy, CUresult, (CUtexObject))              \
                                    function(cuSurfObjectCreate, CUresult,                         \
                                             (CUsurfObject *, const CUDA_RESOURCE_DESC *))         \
                                        function(cuSurfObjectDestroy, CUresult, (CUsurfObject))

/* A kernel's loaded text; consecutive cases often have the same one. */
struct case_module {
    char *text;
    CUmodule module;
    CUfunction function;
};

enum { CASE_MODULES = 64 };

struct case_device {
    struct table_device driver;
#define CASE_POINTER(name, result, parameters) result(CUDAAPI *name) parameters;
    CASE_FUNCTIONS(CASE_POINTER)
#undef CASE_POINTER
    struct case_module modules[CASE_MODULES];
    unsigned next;
    CUdeviceptr data, memory, numbered[4]; /* of case_box */
};

/* A line's words, and the text that becomes its result. */
struct case_line {
    char text[CASE_LINE];
    char *word[CASE_WORDS];
    unsigned count;
    char *said;
    size_t length;
    bool lost; /* the context had a fault: no further case may run in this process */
};

bool case_open(struct case_device *device, const char *driver);

/* The value of a word "key=value"; NULL: the line has none. */
const char *case_value(const struct case_line *line, const char *key);
bool case_has(const struct case_line *line, const char *word);

/* Reads up to most numbers between commas; how many. */
unsigned case_numbers(const char *text, long long *numbers, unsigned most);

void case_say(struct case_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says which call failed. false, always. */
bool case_fail(struct case_line *line, const char *call, CUresult code);

/* The kernel "k" of a PTX text; NULL: the driver refuses it, or text is NULL, because there was no
 * memory. The line says which. */
CUfunction case_load(struct case_device *device, struct case_line *line, const char *text);

/* Launches it with a pointer to data, and what is at second if it has a second parameter, and
 * waits. false: the line says why, and it is lost. */
bool case_launch(struct case_device *device, struct case_line *line, CUfunction function,
                 unsigned blocks, unsigned threads, unsigned shared, CUdeviceptr data,
                 void *second);

/* Runs a case; the result is in line->said, of CASE_SAID bytes. */
void case_box(struct case_device *device, struct case_line *line);
void case_texture(struct case_device *device, struct case_line *line);
void case_run(struct case_device *device, struct case_line *line, const char *text, char *said);

/* Runs all lines on a driver in some processes, restarted after a fault, until the seconds are
 * over: the remaining cases are "not run". results: CASE_SAID bytes per line. false: message says
 * why. Do not open a driver in the calling process before. */
bool case_run_all(const char *driver, char **lines, size_t count, unsigned processes,
                  unsigned seconds, char *results, char *message, size_t bytes);

/* The lines of a file, with each {a|b} expanded; NULL: it cannot be read. The caller frees the
 * array and each line. */
char **case_read(const char *path, size_t *count);

#endif
