/*
 * Devices, contexts, and the register of handles: an open hash table of pointers.
 */
#include "driver_state.h"

#include "options.h"
#include "queue.h"
#include "space.h"

#include <stdlib.h>

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;

static struct soft_device devices[SOFT_DEVICES_MAX];
static struct soft_context contexts[SOFT_DEVICES_MAX];
static bool initialized;
static _Thread_local struct soft_context *current;

static struct {
    struct entry {
        uintptr_t key; /* the handle's address, tagged with its kind; 0: empty; 1: removed */
    } * entries;
    size_t room, used;
} handles;

CUresult soft_state_check(void) {
    pthread_mutex_lock(&soft_lock);
    bool ready = initialized;
    pthread_mutex_unlock(&soft_lock);
    return ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult soft_state_init(void) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&soft_lock);
    if (!initialized && !soft_space_open()) result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; !initialized && result == CUDA_SUCCESS && i < soft_options()->devices; i++) {
        devices[i] = (struct soft_device){
            .ordinal = i, .memory_bytes = soft_options()->memory_bytes, .context = &contexts[i]};
        contexts[i].device = &devices[i];
    }
    if (result == CUDA_SUCCESS) initialized = true;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

struct soft_device *soft_device_of(CUdevice device) {
    bool known = device >= 0 && device < soft_options()->devices;
    return known ? &devices[device] : NULL;
}

bool soft_context_is(const struct soft_context *context) {
    for (int i = 0; i < SOFT_DEVICES_MAX; i++) {
        if (context == &contexts[i] && contexts[i].retained > 0) return true;
    }
    return false;
}

void soft_context_set(struct soft_context *context) {
    current = context;
}

struct soft_context *soft_context_get(void) {
    return current;
}

CUresult soft_context_current(struct soft_context **context) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (current == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&soft_lock);
    result = current->retained == 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : current->error;
    pthread_mutex_unlock(&soft_lock);
    *context = current;
    return result;
}

bool soft_device_charge(struct soft_device *device, uint64_t bytes) {
    pthread_mutex_lock(&soft_lock);
    bool fits = bytes <= device->memory_bytes - device->memory_used;
    if (fits) device->memory_used += bytes;
    pthread_mutex_unlock(&soft_lock);
    return fits;
}

void soft_device_refund(struct soft_device *device, uint64_t bytes) {
    pthread_mutex_lock(&soft_lock);
    device->memory_used -= bytes;
    pthread_mutex_unlock(&soft_lock);
}

static uintptr_t key_of(enum soft_handle_kind kind, const void *handle) {
    return (uintptr_t)handle ^ (uintptr_t)kind << 1;
}

static size_t place_of(uintptr_t key) {
    uint64_t mixed = (uint64_t)key * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 20) & (handles.room - 1);
}

static void put(uintptr_t key) {
    size_t at = place_of(key);
    while (handles.entries[at].key > 1) at = (at + 1) & (handles.room - 1);
    handles.used += handles.entries[at].key == 0;
    handles.entries[at].key = key;
}

bool soft_handle_add(enum soft_handle_kind kind, const void *handle) {
    if (handles.used * 2 >= handles.room) {
        struct entry *old = handles.entries;
        size_t old_room = handles.room, room = old_room < 256 ? 256 : old_room * 2;
        struct entry *more = calloc(room, sizeof *more);
        if (more == NULL) return false;
        handles.entries = more;
        handles.room = room;
        handles.used = 0;
        for (size_t i = 0; i < old_room; i++) {
            if (old[i].key > 1) put(old[i].key);
        }
        free(old);
    }
    put(key_of(kind, handle));
    return true;
}

static struct entry *find(enum soft_handle_kind kind, const void *handle) {
    uintptr_t key = key_of(kind, handle);
    if (handles.room == 0 || handle == NULL) return NULL;
    for (size_t at = place_of(key); handles.entries[at].key != 0;
         at = (at + 1) & (handles.room - 1)) {
        if (handles.entries[at].key == key) return &handles.entries[at];
    }
    return NULL;
}

bool soft_handle_is(enum soft_handle_kind kind, const void *handle) {
    return find(kind, handle) != NULL;
}

void soft_handle_remove(enum soft_handle_kind kind, const void *handle) {
    struct entry *entry = find(kind, handle);
    if (entry != NULL) entry->key = 1;
}
