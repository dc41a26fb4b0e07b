/*
 * The compilers of a run: links to this program in front of PATH, and variables.
 *
 * What programs keep of what they compiled goes to a folder of its own, because a container that a
 * program later loads on a GPU, or a cubin that it loads here, would be refused.
 */
#include "soft_toolchain.h"

#include "audit/audit_names.h"
#include "harness/session.h"
#include "run/command.h"
#include "soft_nvcc.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FATAL = 255 }; /* ptxas's exit code */

static const char *const tools[] = {"ptxas", "nvcc"};
enum { TOOLS = sizeof tools / sizeof tools[0] };

/* Programs look for the toolkit beside the bin that has nvcc (PyCUDA for libcudadevrt.a), and for
 * nvcc in the toolkit (TileLang), so a run has a toolkit with these parts of the real one. */
static const char *const parts[] = {
    "include",       "lib",          "lib64",      "nvvm",         "targets",
    "extras",        "version.json", "bin/bin2c",  "bin/cudafe++", "bin/cuobjdump",
    "bin/fatbinary", "bin/nvdisasm", "bin/nvlink", "bin/nvprune"};
enum { PARTS = sizeof parts / sizeof parts[0] };

/* The folders of compiled kernels, by the libraries that keep them. */
static const char *const caches[][2] = {
    {"CUPY_CACHE_DIR", "cupy"},     {"NUMBA_CACHE_DIR", "numba"},
    {"PYCUDA_CACHE_DIR", "pycuda"}, {"TILELANG_CACHE_DIR", "tilelang"},
    {"TRITON_CACHE_DIR", "triton"}, {"TORCHINDUCTOR_CACHE_DIR", "torchinductor"},
    {"WARP_CACHE_PATH", "warp"}};

/* The folder of what was compiled, which is made. */
static bool toolchain_cache(char *path, size_t bytes) {
    const char *own = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own != NULL && own[0] == '/') {
        snprintf(path, bytes, "%s", own);
    } else if (home != NULL && home[0] == '/') {
        snprintf(path, bytes, "%s/.cache", home);
    } else {
        return false;
    }
    mkdir(path, 0700);
    const size_t used = strlen(path);
    snprintf(path + used, bytes - used, "/tollens-soft");
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static void toolchain_set_caches(void) {
    char root[PATH_MAX], path[PATH_MAX + 32];
    /* A process without a home keeps nothing between runs. */
    if (!toolchain_cache(root, sizeof root)) return;
    for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        if (getenv(caches[i][0]) != NULL) continue;
        snprintf(path, sizeof path, "%s/%s", root, caches[i][1]);
        mkdir(path, 0700); /* PyCUDA expects it */
        setenv(caches[i][0], path, 1);
    }
}

/* Assembles PTX as ptxas, whose exit code it returns: the soft device's library does the work. */
static int toolchain_assemble(int count, char **words) {
    int (*assemble)(int, char **) = NULL;
    void *device = dlopen(hyp_session_soft_library(), RTLD_NOW | RTLD_LOCAL);
    void *address = device != NULL ? dlsym(device, "tollens_soft_assemble") : NULL;
    if (address == NULL) {
        fprintf(stderr, "ptxas fatal   : %s is not the soft device of this program\n",
                hyp_session_soft_library());
        return FATAL;
    }
    memcpy(&assemble, &address, sizeof assemble);
    return assemble(count, words);
}

static bool toolchain_link(const char *target, const char *folder, const char *name) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (symlink(target, path) == 0) return true;
    hyp_command_complain("soft: %s: %s", path, strerror(errno));
    return false;
}

/* Whether a variable names the toolkit with this nvcc. */
static bool toolchain_is_home(const char *variable, const char *nvcc) {
    char path[PATH_MAX + 16], real[PATH_MAX];
    const char *home = getenv(variable);
    snprintf(path, sizeof path, "%.*s/bin/nvcc", PATH_MAX - 1, home != NULL ? home : "");
    return home != NULL && realpath(path, real) != NULL && strcmp(real, nvcc) == 0;
}

/* The toolkit of a run: links to parts of the one that this nvcc is of, which ours calls. */
static bool toolchain_make_toolkit(const char *nvcc, const char *folder) {
    static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
    char real[PATH_MAX], path[PATH_MAX + 32];
    if (realpath(nvcc, real) == NULL) return true;
    const int bin = (int)(strrchr(real, '/') - real);
    if (strcmp(real + bin, "/nvcc") != 0) return true; /* a link to ccache, say */
    for (int i = 0; i < PARTS; i++) {
        snprintf(path, sizeof path, "%.*s/../%s", bin, real, parts[i]);
        if (access(path, F_OK) == 0 && !toolchain_link(path, folder, parts[i])) return false;
    }
    setenv("TOLLENS_SOFT_REAL_NVCC", nvcc, 1);
    for (int i = 0; i < 2; i++) {
        if (toolchain_is_home(homes[i], real)) setenv(homes[i], folder, 1);
    }
    return true;
}

/* ---- what commands call ---- */

bool hyp_soft_toolchain_open(const char *folder) {
    char bin[PATH_MAX + 8], path[PATH_MAX + 32], nvcc[PATH_MAX];
    const char *before = getenv("PATH");
    const bool has_nvcc = hyp_soft_nvcc_find(nvcc, sizeof nvcc);
    snprintf(bin, sizeof bin, "%s/bin", folder);
    if (mkdir(bin, 0700) != 0) {
        hyp_command_complain("soft: %s: %s", bin, strerror(errno));
        return false;
    }
    for (int i = 0; i < TOOLS; i++) {
        if (strcmp(tools[i], "nvcc") == 0 && !has_nvcc) continue;
        if (!toolchain_link(hyp_session_program(), bin, tools[i])) return false;
    }
    if (has_nvcc && !toolchain_make_toolkit(nvcc, folder)) return false;
    const size_t bytes = strlen(bin) + (before != NULL ? strlen(before) : 0) + 2;
    char *list = malloc(bytes);
    if (list == NULL) {
        hyp_command_complain("soft: out of memory");
        return false;
    }
    snprintf(list, bytes, "%s%s%s", bin, before != NULL ? ":" : "", before != NULL ? before : "");
    setenv("PATH", list, 1);
    free(list);
    snprintf(path, sizeof path, "%s/ptxas", bin);
    setenv("TRITON_PTXAS_PATH", path, 1);
    setenv("TRITON_PTXAS_BLACKWELL_PATH", path, 1);
    setenv("TOLLENS_SOFT_LIBRARY", hyp_session_soft_library(), 1);
    toolchain_set_caches();
    return true;
}

void hyp_soft_toolchain_close(const char *folder) {
    char path[PATH_MAX + 32];
    for (int i = 0; i < TOOLS; i++) {
        snprintf(path, sizeof path, "%s/bin/%s", folder, tools[i]);
        unlink(path);
    }
    for (int i = 0; i < PARTS; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/bin", folder);
    rmdir(path);
}

void hyp_soft_toolchain_say(void) {
    static const char *const libraries[] = {"libnvrtc.so.12", "libnvrtc.so.13",
                                            "libnvJitLink.so.12", "libnvJitLink.so.13"};
    char path[PATH_MAX], soft[PATH_MAX];
    hyp_command_say("Compilers under tollens soft, which hand PTX on (--toolchain off leaves them "
                    "out):\n"
                    "  ptxas               %s\n",
                    hyp_session_program());
    if (hyp_soft_nvcc_find(path, sizeof path)) {
        hyp_command_say("  nvcc                %s, with PTX added\n", path);
    } else {
        hyp_command_say("  nvcc                none: PATH and CUDA_HOME have no CUDA toolkit\n");
    }
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        const bool has = realpath(hyp_session_soft_library(), soft) != NULL &&
                         audit_name_file(libraries[i], soft, path, sizeof path);
        hyp_command_say("  %-18s  %s\n", libraries[i], has ? path : "missing");
    }
}

int hyp_command_soft_tool(int count, char **words) {
    const char *name = count > 0 ? strrchr(words[0], '/') : NULL;
    name = name != NULL ? name + 1 : count > 0 ? words[0] : "";
    if (strcmp(name, "ptxas") == 0) return toolchain_assemble(count - 1, words + 1);
    if (strcmp(name, "nvcc") == 0) return hyp_soft_nvcc(count - 1, words + 1, toolchain_assemble);
    return -1;
}
