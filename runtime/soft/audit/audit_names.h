/*
 * Audit names: the libraries that programs under `tollens soft` get instead of those that they
 * request. To add a library, add a row; a row whose file is missing replaces nothing.
 *
 * The audit library and the program `tollens` share this list and how a file is found.
 */
#ifndef AUDIT_NAMES_H
#define AUDIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct audit_name {
    const char *name; /* the file name that a program requests, without a path */
    const char *file; /* of ours; NULL: the soft device */
    bool is_runtime;  /* it defines the functions of the CUDA runtime, and is preloaded */
    bool is_compiler; /* of the toolchain, which TOLLENS_SOFT_TOOLCHAIN=off leaves out */
} audit_names[] = {
    {"libcuda.so.1", NULL, false, false},
    {"libcuda.so", NULL, false, false},
    {"libcudart.so.13", "libcudart.so.13", true, false},
    {"libcudart.so.12", "libcudart.so.12", true, false},
    {"libnvidia-ml.so.1", NULL, false, false},
    {"libnvidia-ml.so", NULL, false, false},
    {"libnvrtc.so.12", "libnvrtc.so.12", false, true},
    {"libnvrtc.so.13", "libnvrtc.so.13", false, true},
    {"libnvJitLink.so.12", "libnvJitLink.so.12", false, true},
    {"libnvJitLink.so.13", "libnvJitLink.so.13", false, true},
    {"libcublas.so.12", "libcublas.so.12", false, false},
    {"libcublas.so.13", "libcublas.so.13", false, false},
    {"libcublasLt.so.12", "libcublasLt.so.12", false, false},
    {"libcublasLt.so.13", "libcublasLt.so.13", false, false},
};
enum { AUDIT_NAMES = sizeof audit_names / sizeof audit_names[0] };

/* Writes the path of a file that lies beside the soft device, or in the folder tollens-soft below,
 * where the soft device's folder is one that other programs use. file NULL: the soft device itself.
 * soft is the soft device's path, with a slash. false: there is no such file, or path is too
 * short. */
static inline bool audit_name_file(const char *file, const char *soft, char *path, size_t bytes) {
    static const char *const ways[] = {"", "tollens-soft/"};
    const char *slash = strrchr(soft, '/');
    if (slash == NULL) return false;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const int length = file == NULL ? snprintf(path, bytes, "%s", soft)
                                        : snprintf(path, bytes, "%.*s%s%s", (int)(slash - soft) + 1,
                                                   soft, ways[i], file);
        if (length > 0 && (size_t)length < bytes && access(path, R_OK) == 0) return true;
    }
    return false;
}

#endif
