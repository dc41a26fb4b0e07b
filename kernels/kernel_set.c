/*
 * A list that only grows: readers walk it without a lock, writers hold one.
 */
#include "kernel_set.h"

#include "core/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct loaded {
    struct loaded *next;
    const struct kn_variant *variant;
    struct tol_module *module;
    struct tol_kernel *kernel;
};

enum { BUCKETS = 64 };

struct kn_kernels {
    struct tol_context *context;
    pthread_mutex_t adding;
    _Atomic(struct loaded *) buckets[BUCKETS];
    _Atomic(const struct kn_tuning *) tuning;
};

static _Atomic(struct loaded *) *bucket_of(struct kn_kernels *kernels,
                                           const struct kn_variant *variant) {
    return &kernels->buckets[(uintptr_t)variant / sizeof *variant % BUCKETS];
}

static const struct tol_kernel *look_up(struct kn_kernels *kernels,
                                        const struct kn_variant *variant) {
    struct loaded *loaded = atomic_load_explicit(bucket_of(kernels, variant), memory_order_acquire);
    while (loaded != NULL && loaded->variant != variant) loaded = loaded->next;
    return loaded != NULL ? loaded->kernel : NULL;
}

tol_status kn_kernels_create(struct tol_context *context, struct kn_kernels **kernels) {
    tol_status status = TOL_OK;
    struct tol_context *shared = NULL;
    struct kn_kernels *made = NULL;
    TOL_CHECK(context != NULL && kernels != NULL, TOL_INVALID_ARGUMENT,
              "kn_kernels_create needs a context and a place for the result");
    /* One more reference to the same context. */
    TOL_TRY(tol_context_create(tol_context_driver(context), tol_context_device(context)->ordinal,
                               &shared));
    made = calloc(1, sizeof *made);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for a set of kernels");
    pthread_mutex_init(&made->adding, NULL);
    made->context = shared;
    *kernels = made;
    return TOL_OK;
out:
    tol_context_destroy(shared);
    return status;
}

void kn_kernels_destroy(struct kn_kernels *kernels) {
    if (kernels == NULL) return;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct loaded *loaded = kernels->buckets[i], *next; loaded != NULL; loaded = next) {
            next = loaded->next;
            tol_module_destroy(loaded->module);
            free(loaded);
        }
    }
    pthread_mutex_destroy(&kernels->adding);
    tol_context_destroy(kernels->context);
    free(kernels);
}

struct tol_context *kn_kernels_context(const struct kn_kernels *kernels) {
    return kernels->context;
}

void kn_kernels_use(struct kn_kernels *kernels, const struct kn_tuning *tuning) {
    atomic_store_explicit(&kernels->tuning, tuning, memory_order_release);
}

const char *kn_kernels_tuned(const struct kn_kernels *kernels, const struct kn_tuning_key *key) {
    const struct kn_tuned *tuned =
        kn_tuning_find(atomic_load_explicit(&kernels->tuning, memory_order_acquire), key);
    return tuned != NULL ? tuned->variant : NULL;
}

static tol_status load(struct kn_kernels *kernels, const struct kn_variant *variant,
                       struct loaded **result) {
    enum { SHARED_BYTES_ALWAYS = 48 << 10 };
    tol_status status = TOL_OK;
    struct loaded *loaded = calloc(1, sizeof *loaded);
    TOL_CHECK(loaded != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for the kernel %s",
              variant->entry);
    loaded->variant = variant;
    TOL_TRY(kn_image_load(kernels->context, variant->images, &loaded->module));
    TOL_TRY(tol_module_kernel(loaded->module, variant->entry, &loaded->kernel));
    if (variant->shared_bytes > SHARED_BYTES_ALWAYS) {
        TOL_TRY(tol_kernel_allow_shared(loaded->kernel, variant->shared_bytes));
    }
    *result = loaded;
    return TOL_OK;
out:
    if (loaded != NULL) tol_module_destroy(loaded->module);
    free(loaded);
    return status;
}

tol_status kn_kernels_find(struct kn_kernels *kernels, const struct kn_variant *variant,
                           const struct tol_kernel **kernel) {
    tol_status status = TOL_OK;
    struct loaded *loaded = NULL;
    const struct tol_kernel *found = look_up(kernels, variant);
    if (found == NULL) {
        pthread_mutex_lock(&kernels->adding);
        found = look_up(kernels, variant); /* another thread may have been faster */
        if (found == NULL && (status = load(kernels, variant, &loaded)) == TOL_OK) {
            _Atomic(struct loaded *) *bucket = bucket_of(kernels, variant);
            found = loaded->kernel;
            loaded->next = atomic_load_explicit(bucket, memory_order_relaxed);
            atomic_store_explicit(bucket, loaded, memory_order_release);
        }
        pthread_mutex_unlock(&kernels->adding);
    }
    if (status == TOL_OK) *kernel = found;
    return status;
}

tol_status kn_kernels_pick(struct kn_kernels *kernels, const struct kn_variants *variants,
                           const char *name, const void *problem, const struct kn_variant **variant,
                           const struct tol_kernel **kernel) {
    const struct tol_device *device = tol_context_device(kernels->context);
    tol_status status = kn_variant_pick(variants, device, name, problem, variant);
    return status == TOL_OK ? kn_kernels_find(kernels, *variant, kernel) : status;
}
