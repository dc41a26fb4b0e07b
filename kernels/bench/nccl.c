/*
 * A dozen functions of libnccl, found by name.
 */
#include "bench/nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, SUM = 0, FLOAT16 = 6, FLOAT32 = 7, BFLOAT16 = 9 }; /* ncclResult_t and so on */

typedef struct communicator *communicator;

struct kn_nccl {
    unsigned ranks;
    communicator communicators[KN_COLLECTIVE_RANKS_MAX];
    int (*version)(int *version);
    int (*init_all)(communicator *communicators, int count, const int *devices);
    int (*destroy)(communicator communicator);
    int (*begin)(void);
    int (*end)(void);
    int (*all_reduce)(const void *in, void *out, size_t count, int type, int operation,
                      communicator communicator, CUstream stream);
    int (*reduce_scatter)(const void *in, void *out, size_t count, int type, int operation,
                          communicator communicator, CUstream stream);
    int (*all_gather)(const void *in, void *out, size_t count, int type, communicator communicator,
                      CUstream stream);
    int (*broadcast)(const void *in, void *out, size_t count, int type, int root,
                     communicator communicator, CUstream stream);
};

static bool find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(void *library, struct kn_nccl *nccl) {
    return find(library, "ncclGetVersion", &nccl->version) &&
           find(library, "ncclCommInitAll", &nccl->init_all) &&
           find(library, "ncclCommDestroy", &nccl->destroy) &&
           find(library, "ncclGroupStart", &nccl->begin) &&
           find(library, "ncclGroupEnd", &nccl->end) &&
           find(library, "ncclAllReduce", &nccl->all_reduce) &&
           find(library, "ncclReduceScatter", &nccl->reduce_scatter) &&
           find(library, "ncclAllGather", &nccl->all_gather) &&
           find(library, "ncclBroadcast", &nccl->broadcast);
}

struct kn_nccl *kn_nccl_open(unsigned ranks, char *reason, size_t reason_bytes) {
    const char *named = getenv("TOLLENS_LIBNCCL");
    const char *path = named != NULL && named[0] != '\0' ? named : "libnccl.so.2";
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("NCCL_MNNVL_ENABLE", "0", 1);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(reason, reason_bytes, "%s", dlerror());
        return NULL;
    }
    int devices[KN_COLLECTIVE_RANKS_MAX];
    struct kn_nccl *nccl = calloc(1, sizeof *nccl);
    for (int i = 0; i < KN_COLLECTIVE_RANKS_MAX; i++) devices[i] = i;
    if (nccl == NULL || !find_all(library, nccl)) {
        snprintf(reason, reason_bytes, "%s lacks a function of NCCL 2", path);
        free(nccl);
        return NULL;
    }
    nccl->ranks = ranks;
    const int result = nccl->init_all(nccl->communicators, (int)ranks, devices);
    if (result == SUCCESS) return nccl;
    snprintf(reason, reason_bytes, "ncclCommInitAll ended with %d", result);
    free(nccl);
    return NULL;
}

void kn_nccl_close(struct kn_nccl *nccl) {
    if (nccl == NULL) return;
    for (unsigned i = 0; i < nccl->ranks; i++) nccl->destroy(nccl->communicators[i]);
    free(nccl);
}

int kn_nccl_version(const struct kn_nccl *nccl) {
    int version = 0;
    return nccl->version(&version) == SUCCESS ? version : 0;
}

static int run_rank(const struct kn_nccl *nccl, enum kn_nccl_call call, unsigned rank,
                    const struct kn_collective_part *part, size_t count, int type) {
    const void *in = (const void *)(uintptr_t)part->in.address;
    void *out = (void *)(uintptr_t)part->out.address;
    const CUstream stream = tol_stream_handle(part->stream);
    const communicator own = nccl->communicators[rank];
    switch (call) {
    case KN_NCCL_REDUCE_SCATTER:
        return nccl->reduce_scatter(in, out, count, type, SUM, own, stream);
    case KN_NCCL_ALL_GATHER:
        return nccl->all_gather(in, out, count, type, own, stream);
    case KN_NCCL_BROADCAST:
        return nccl->broadcast(in, out, count, type, 0, own, stream);
    default:
        return nccl->all_reduce(in, out, count, type, SUM, own, stream);
    }
}

bool kn_nccl_run(struct kn_nccl *nccl, enum kn_nccl_call call,
                 const struct kn_collective_part *parts, size_t count, enum kn_type type) {
    static const int types[KN_TYPES] = {
        [KN_F32] = FLOAT32, [KN_F16] = FLOAT16, [KN_BF16] = BFLOAT16};
    int result = nccl->begin();
    for (unsigned i = 0; i < nccl->ranks && result == SUCCESS; i++) {
        result = run_rank(nccl, call, i, &parts[i], count, types[type]);
    }
    const int ended = nccl->end();
    return result == SUCCESS && ended == SUCCESS;
}
