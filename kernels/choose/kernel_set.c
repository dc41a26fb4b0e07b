/*
 * A list that only grows: readers walk it without a lock, writers hold one. Variants whose entries
 * are in one file of kernels have one module, which is unpacked once.
 */
#include "choose/kernel_set.h"

#include "core/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct unpacked {
    struct unpacked *next;
    const struct kn_image *images;
    struct tol_module *module;
};

struct loaded {
    struct loaded *next;
    const struct kn_variant *variant;
    struct tol_kernel *kernel; /* of a module of the set's */
    /* The clusters that run at once, and for which launches: see asked_for. 0: never asked. */
    _Atomic uint64_t clusters;
};

enum { BUCKETS = 64 };

struct kn_kernels {
    struct tol_context *context;
    pthread_mutex_t adding;
    struct unpacked *modules; /* under the lock */
    _Atomic(struct loaded *) buckets[BUCKETS];
    _Atomic(const struct kn_tuning *) tuning;
    _Atomic uint64_t tunings; /* calls of kn_kernels_use */
    struct kn_plans *plans;
};

static _Atomic(struct loaded *) *bucket_of(struct kn_kernels *kernels,
                                           const struct kn_variant *variant) {
    return &kernels->buckets[(uintptr_t)variant / sizeof *variant % BUCKETS];
}

static struct loaded *look_up_loaded(struct kn_kernels *kernels, const struct kn_variant *variant) {
    struct loaded *loaded = atomic_load_explicit(bucket_of(kernels, variant), memory_order_acquire);
    while (loaded != NULL && loaded->variant != variant) loaded = loaded->next;
    return loaded;
}

static const struct tol_kernel *kernel_set_look_up(struct kn_kernels *kernels,
                                                   const struct kn_variant *variant) {
    const struct loaded *loaded = look_up_loaded(kernels, variant);
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
    made->plans = kn_plans_create();
    TOL_CHECK(made->plans != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for plans");
    pthread_mutex_init(&made->adding, NULL);
    made->context = shared;
    *kernels = made;
    return TOL_OK;
out:
    free(made);
    tol_context_destroy(shared);
    return status;
}

void kn_kernels_destroy(struct kn_kernels *kernels) {
    if (kernels == NULL) return;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct loaded *loaded = kernels->buckets[i], *next; loaded != NULL; loaded = next) {
            next = loaded->next;
            free(loaded);
        }
    }
    for (struct unpacked *module = kernels->modules, *next; module != NULL; module = next) {
        next = module->next;
        tol_module_destroy(module->module);
        free(module);
    }
    pthread_mutex_destroy(&kernels->adding);
    kn_plans_destroy(kernels->plans);
    tol_context_destroy(kernels->context);
    free(kernels);
}

struct tol_context *kn_kernels_context(const struct kn_kernels *kernels) {
    return kernels->context;
}

void kn_kernels_use(struct kn_kernels *kernels, const struct kn_tuning *tuning) {
    atomic_store_explicit(&kernels->tuning, tuning, memory_order_release);
    atomic_fetch_add_explicit(&kernels->tunings, 1, memory_order_release);
}

bool kn_kernels_recall(struct kn_kernels *kernels, struct kn_plan_key *key, void *plan,
                       size_t bytes) {
    const uint64_t uses = atomic_load_explicit(&kernels->tunings, memory_order_acquire);
    const struct kn_tuning *tuning = atomic_load_explicit(&kernels->tuning, memory_order_acquire);
    key->numbers[KN_PLAN_NUMBERS - 2] = (int64_t)uses;
    key->numbers[KN_PLAN_NUMBERS - 1] = tuning != NULL ? (int64_t)kn_tuning_added(tuning) : 0;
    return kn_plans_find(kernels->plans, key, plan, bytes);
}

void kn_kernels_keep(struct kn_kernels *kernels, const struct kn_plan_key *key, const void *plan,
                     size_t bytes) {
    kn_plans_keep(kernels->plans, key, plan, bytes);
}

const char *kn_kernels_tuned(const struct kn_kernels *kernels, const struct kn_tuning_key *key) {
    const struct kn_tuned *tuned =
        kn_tuning_find(atomic_load_explicit(&kernels->tuning, memory_order_acquire), key);
    return tuned != NULL ? tuned->variant : NULL;
}

/* The module of a file of kernels, which stays the set's. */
static tol_status module_of(struct kn_kernels *kernels, const struct kn_image *images,
                            struct tol_module **module) {
    tol_status status = TOL_OK;
    struct unpacked *unpacked = kernels->modules;
    while (unpacked != NULL && unpacked->images != images) unpacked = unpacked->next;
    if (unpacked == NULL) {
        unpacked = calloc(1, sizeof *unpacked);
        TOL_CHECK(unpacked != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for a module of kernels");
        status = kn_image_load(kernels->context, images, &unpacked->module);
        if (status != TOL_OK) {
            free(unpacked);
            return status;
        }
        unpacked->images = images;
        unpacked->next = kernels->modules;
        kernels->modules = unpacked;
    }
    *module = unpacked->module;
out:
    return status;
}

static tol_status kernel_set_load(struct kn_kernels *kernels, const struct kn_variant *variant,
                                  struct loaded **result) {
    enum { SHARED_BYTES_ALWAYS = 48 << 10 };
    tol_status status = TOL_OK;
    struct tol_module *module = NULL;
    struct loaded *loaded = calloc(1, sizeof *loaded);
    TOL_CHECK(loaded != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for the kernel %s",
              variant->entry);
    loaded->variant = variant;
    TOL_TRY(module_of(kernels, variant->images, &module));
    TOL_TRY(tol_module_kernel(module, variant->entry, &loaded->kernel));
    if (variant->shared_bytes > SHARED_BYTES_ALWAYS) {
        TOL_TRY(tol_kernel_allow_shared(loaded->kernel, variant->shared_bytes));
    }
    *result = loaded;
    return TOL_OK;
out:
    free(loaded);
    return status;
}

tol_status kn_kernels_find(struct kn_kernels *kernels, const struct kn_variant *variant,
                           const struct tol_kernel **kernel) {
    tol_status status = TOL_OK;
    struct loaded *loaded = NULL;
    const struct tol_kernel *found = kernel_set_look_up(kernels, variant);
    if (found == NULL) {
        pthread_mutex_lock(&kernels->adding);
        found = kernel_set_look_up(kernels, variant); /* another thread may have been faster */
        if (found == NULL && (status = kernel_set_load(kernels, variant, &loaded)) == TOL_OK) {
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

/* The threads and bytes of a block in one number, above the 16 bits that an answer takes. */
static uint64_t asked_for(const struct tol_launch_shape *shape) {
    const uint64_t threads = (uint64_t)shape->block_x * shape->block_y * shape->block_z;
    return (uint64_t)shape->shared_bytes << 32 | threads << 16;
}

unsigned kn_kernels_clusters(struct kn_kernels *kernels, const struct kn_variant *variant,
                             const struct tol_launch_shape *shape) {
    struct loaded *loaded = look_up_loaded(kernels, variant);
    const struct tol_driver_table *driver = tol_context_functions(kernels->context);
    if (loaded == NULL || driver->cuOccupancyMaxActiveClusters == NULL) return 0;
    const uint64_t asked = asked_for(shape);
    const uint64_t known = atomic_load_explicit(&loaded->clusters, memory_order_relaxed);
    if (known != 0 && (known & ~(uint64_t)UINT16_MAX) == asked) return (unsigned)(known - asked);
    const CUlaunchConfig config = {.gridDimX = shape->grid_x,
                                   .gridDimY = shape->grid_y,
                                   .gridDimZ = shape->grid_z,
                                   .blockDimX = shape->block_x,
                                   .blockDimY = shape->block_y,
                                   .blockDimZ = shape->block_z,
                                   .sharedMemBytes = shape->shared_bytes};
    int count = 0;
    CUresult result =
        driver->cuOccupancyMaxActiveClusters(&count, tol_kernel_handle(loaded->kernel), &config);
    if (result != CUDA_SUCCESS || count < 0 || count > UINT16_MAX) return 0;
    atomic_store_explicit(&loaded->clusters, asked | (unsigned)count, memory_order_relaxed);
    return (unsigned)count;
}

tol_status kn_kernels_pick(struct kn_kernels *kernels, const struct kn_variants *variants,
                           const char *name, const void *problem, const struct kn_variant **variant,
                           const struct tol_kernel **kernel) {
    const struct tol_device *device = tol_context_device(kernels->context);
    tol_status status = kn_variant_pick(variants, device, name, problem, variant);
    return status == TOL_OK ? kn_kernels_find(kernels, *variant, kernel) : status;
}

tol_status kn_kernels_choose(struct kn_kernels *kernels, const struct kn_variants *table,
                             struct kn_wish wish, const struct kn_tuning_key *key,
                             const void *problem, const struct kn_variant **variant,
                             const struct tol_kernel **kernel) {
    const bool may_be_tuned = key != NULL && kn_wish_is_open(wish);
    const char *tuned = may_be_tuned ? kn_kernels_tuned(kernels, key) : NULL;
    if (tuned != NULL &&
        kn_kernels_pick(kernels, table, tuned, problem, variant, kernel) == TOL_OK) {
        return TOL_OK;
    }
    return kn_kernels_pick(kernels, wish.variants != NULL ? wish.variants : table, wish.name,
                           problem, variant, kernel);
}
