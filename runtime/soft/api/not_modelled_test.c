/*
 * Functions that are not modelled: found, refused, and reported once.
 */
#include "not_modelled.h"
#include "test/test_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(not_modelled);

static CUresult call(const struct soft_entry *entry, bool own) {
    CUresult (*function)(void *, void *, size_t) = NULL;
    memcpy(&function, own ? &entry->own : &entry->function, sizeof function);
    return function(NULL, NULL, 0);
}

Test(not_modelled, each_is_exported_and_refuses) {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    cr_assert(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/libtollens-soft.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library != NULL, "%s", dlerror());
    cr_assert(freopen("/dev/null", "w", stderr) != NULL); /* a line for each of them */
    for (int i = 0; i < SOFT_OTHERS; i++) {
        const struct soft_entry *entry = &soft_other_entries[i];
        cr_assert(dlsym(library, entry->name) != NULL, "%s is not exported", entry->name);
        cr_assert_eq(call(entry, false), CUDA_ERROR_NOT_SUPPORTED, "%s", entry->name);
        if (entry->own == NULL) continue;
        char name[128];
        snprintf(name, sizeof name, "%s%s", entry->name, entry->suffix);
        cr_assert(dlsym(library, name) != NULL, "%s is not exported", name);
        cr_assert_eq(call(entry, true), CUDA_ERROR_NOT_SUPPORTED, "%s", name);
    }
}

Test(not_modelled, a_program_of_its_version_finds_it_and_an_older_one_does_not) {
    CUdriverProcAddressQueryResult status = 0;
    void *function = NULL;
    OK(cuGetProcAddress_v2("cuGreenCtxCreate", &function, 12040, 0, &status));
    cr_assert(function != NULL && status == CU_GET_PROC_ADDRESS_SUCCESS);
    OK(cuGetProcAddress_v2("cuGreenCtxCreate", &function, 12030, 0, &status));
    cr_assert(function == NULL && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

/* A body that is written moves to functions.def; a name in both lists would be defined twice. */
Test(not_modelled, no_variant_is_modelled_and_not) {
    for (int i = 0; i < SOFT_OTHERS; i++) {
        for (int j = 0; j < SOFT_CALLS; j++) {
            const struct soft_entry *one = &soft_other_entries[i], *other = &soft_entries[j];
            cr_assert(strcmp(one->name, other->name) != 0, "%s", one->name);
            cr_assert(strcmp(one->base, other->base) != 0 || one->version != other->version,
                      "%s and %s are both of version %d", one->name, other->name, one->version);
        }
    }
}

/* If a function has a version that is modelled, its older versions are modelled too, except those
 * of CUDA 2 and 3 with 32-bit addresses or sizes. CUDA 4 and later introduced none of those. */
Test(not_modelled, old_forms_of_modelled_functions_are_modelled) {
    for (int i = 0; i < SOFT_OTHERS; i++) {
        const struct soft_entry *one = &soft_other_entries[i];
        if (one->version < 3020) continue;
        for (int j = 0; j < SOFT_CALLS; j++) {
            cr_assert(strcmp(one->base, soft_entries[j].base) != 0, "%s is not modelled, %s is",
                      one->name, soft_entries[j].name);
        }
    }
}

Test(not_modelled, names_of_graphics_are_found) {
    static const char *const names[] = {"cuGLInit", "cuGraphicsGLRegisterImage",
                                        "cuEGLStreamConsumerConnect", "cuVDPAUGetDevice",
                                        "cuGraphicsVDPAURegisterVideoSurface"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *function = NULL;
        OK(cuGetProcAddress_v2(names[i], &function, 13000, 0, NULL));
        cr_assert(function != NULL, "%s", names[i]);
    }
}

Test(not_modelled, the_first_call_of_each_says_so) {
    char path[] = "/tmp/tollens-not-modelled-XXXXXX", said[2000] = "";
    int file = mkstemp(path), kept = dup(STDERR_FILENO);
    cr_assert(file >= 0 && kept >= 0);
    fflush(stderr);
    dup2(file, STDERR_FILENO);
    for (int i = 0; i < 3; i++) call(&soft_other_entries[SOFT_OTHER_cuMulticastCreate], false);
    call(&soft_other_entries[SOFT_OTHER_cuMemAlloc], false);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    cr_assert(pread(file, said, sizeof said - 1, 0) > 0);
    close(file), close(kept), unlink(path);
    cr_assert_str_eq(said, "tollens-soft: cuMulticastCreate is not modelled and answers "
                           "CUDA_ERROR_NOT_SUPPORTED\n"
                           "tollens-soft: cuMemAlloc is not modelled and answers "
                           "CUDA_ERROR_NOT_SUPPORTED; cuMemAlloc_v2 is\n");
}
