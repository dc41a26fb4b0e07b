/*
 * dlopen on POSIX systems, LoadLibrary on Windows: one row of names and three calls each.
 */
#include "library.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)

#include <windows.h>

static const char *const names[] = {"nvcuda.dll", NULL};

void *tol_library_open(const char *path, char *reason, size_t reason_bytes) {
    HMODULE library = LoadLibraryA(path);
    if (library == NULL) {
        snprintf(reason, reason_bytes, "%s: LoadLibrary failed with code %lu", path,
                 (unsigned long)GetLastError());
    }
    return (void *)library;
}

int tol_library_find(void *library, const char *name, void *function, size_t function_bytes) {
    FARPROC address = GetProcAddress((HMODULE)library, name);
    if (address == NULL || function_bytes != sizeof address) return 0;
    memcpy(function, &address, sizeof address);
    return 1;
}

#else

#include <dlfcn.h>

static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};

void *tol_library_open(const char *path, char *reason, size_t reason_bytes) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *error = dlerror();
        snprintf(reason, reason_bytes, "%s", error != NULL ? error : path);
    }
    return library;
}

/* ISO C has no conversion from an object pointer to a function pointer; POSIX promises that the
 * bits of dlsym's result are the function's address, so the bits are copied. */
int tol_library_find(void *library, const char *name, void *function, size_t function_bytes) {
    void *address = dlsym(library, name);
    if (address == NULL || function_bytes != sizeof address) return 0;
    memcpy(function, &address, sizeof address);
    return 1;
}

#endif

const char *const *tol_library_names(void) {
    return names;
}
