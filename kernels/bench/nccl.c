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
    unsigned ranks; /* of this process */
    communicator communicators[KN_COLLECTIVE_RANKS_MAX];
    int (*version)(int *version);
    int (*init_all)(communicator *communicators, int count, const int *devices);
    int (*make_id)(struct kn_nccl_id *id);
    int (*init_rank)(communicator *communicator, int ranks, struct kn_nccl_id id, int rank);
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

static bool nccl_find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool nccl_find_all(void *library, struct kn_nccl *nccl) {
    return nccl_find(library, "ncclGetVersion", &nccl->version) &&
           nccl_find(library, "ncclCommInitAll", &nccl->init_all) &&
           nccl_find(library, "ncclGetUniqueId", &nccl->make_id) &&
           nccl_find(library, "ncclCommInitRank", &nccl->init_rank) &&
           nccl_find(library, "ncclCommDestroy", &nccl->destroy) &&
           nccl_find(library, "ncclGroupStart", &nccl->begin) &&
           nccl_find(library, "ncclGroupEnd", &nccl->end) &&
           nccl_find(library, "ncclAllReduce", &nccl->all_reduce) &&
           nccl_find(library, "ncclReduceScatter", &nccl->reduce_scatter) &&
           nccl_find(library, "ncclAllGather", &nccl->all_gather) &&
           nccl_find(library, "ncclBroadcast", &nccl->broadcast);
}

/* NULL: it cannot be opened. It stays open when what is returned is freed. */
static struct kn_nccl *nccl_load(char *reason, size_t reason_bytes) {
    const char *named = getenv("TOLLENS_LIBNCCL");
    const char *path = named != NULL && named[0] != '\0' ? named : "libnccl.so.2";
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("NCCL_MNNVL_ENABLE", "0", 1);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(reason, reason_bytes, "%s", dlerror());
        return NULL;
    }
    struct kn_nccl *nccl = calloc(1, sizeof *nccl);
    if (nccl != NULL && nccl_find_all(library, nccl)) return nccl;
    snprintf(reason, reason_bytes, "%s lacks a function of NCCL 2", path);
    free(nccl);
    return NULL;
}

static struct kn_nccl *nccl_refuse(struct kn_nccl *nccl, const char *call, int result, char *reason,
                                   size_t reason_bytes) {
    snprintf(reason, reason_bytes, "%s ended with %d", call, result);
    free(nccl);
    return NULL;
}

struct kn_nccl *kn_nccl_open(unsigned ranks, char *reason, size_t reason_bytes) {
    int devices[KN_COLLECTIVE_RANKS_MAX];
    struct kn_nccl *nccl = nccl_load(reason, reason_bytes);
    for (int i = 0; i < KN_COLLECTIVE_RANKS_MAX; i++) devices[i] = i;
    if (nccl == NULL) return NULL;
    nccl->ranks = ranks;
    const int result = nccl->init_all(nccl->communicators, (int)ranks, devices);
    if (result == SUCCESS) return nccl;
    return nccl_refuse(nccl, "ncclCommInitAll", result, reason, reason_bytes);
}

bool kn_nccl_make_id(struct kn_nccl_id *id, char *reason, size_t reason_bytes) {
    struct kn_nccl *nccl = nccl_load(reason, reason_bytes);
    if (nccl == NULL) return false;
    const int result = nccl->make_id(id);
    if (result != SUCCESS) {
        nccl_refuse(nccl, "ncclGetUniqueId", result, reason, reason_bytes);
        return false;
    }
    free(nccl);
    return true;
}

struct kn_nccl *kn_nccl_join(const struct kn_nccl_id *id, unsigned rank, unsigned ranks,
                             char *reason, size_t reason_bytes) {
    struct kn_nccl *nccl = nccl_load(reason, reason_bytes);
    if (nccl == NULL) return NULL;
    nccl->ranks = 1;
    const int result = nccl->init_rank(nccl->communicators, (int)ranks, *id, (int)rank);
    if (result == SUCCESS) return nccl;
    return nccl_refuse(nccl, "ncclCommInitRank", result, reason, reason_bytes);
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

static int nccl_run_rank(const struct kn_nccl *nccl, enum kn_nccl_call call, unsigned rank,
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
    if (nccl->ranks == 1) {
        return nccl_run_rank(nccl, call, 0, parts, count, types[type]) == SUCCESS;
    }
    int result = nccl->begin();
    for (unsigned i = 0; i < nccl->ranks && result == SUCCESS; i++) {
        result = nccl_run_rank(nccl, call, i, &parts[i], count, types[type]);
    }
    const int ended = nccl->end();
    return result == SUCCESS && ended == SUCCESS;
}
