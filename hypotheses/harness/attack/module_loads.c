/*
 * A queue of texts that threads empty.
 */
#include "module_loads.h"

#include "harness/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct queue {
    struct tol_context *context;
    struct hyp_module_load **order; /* the longest first */
    size_t count;
    atomic_size_t next;
};

static void *module_loads_empty(void *argument) {
    struct queue *queue = argument;
    for (size_t i; (i = atomic_fetch_add(&queue->next, 1)) < queue->count;) {
        struct hyp_module_load *load = queue->order[i];
        const uint64_t begin_ns = hyp_clock_ns();
        load->status =
            tol_module_load(queue->context, load->text, load->bytes, NULL, &load->module);
        load->ns = hyp_clock_ns() - begin_ns;
        if (load->status != TOL_OK) {
            snprintf(load->message, sizeof load->message, "%s", tol_message());
        }
    }
    return NULL;
}

static int module_loads_by_bytes(const void *a, const void *b) {
    const struct hyp_module_load *const *one = a, *const *other = b;
    return ((*one)->bytes < (*other)->bytes) - ((*one)->bytes > (*other)->bytes);
}

void hyp_module_loads(struct tol_context *context, struct hyp_module_load *loads, size_t count) {
    pthread_t threads[HYP_MODULE_LOADS_THREADS_MAX];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const long wanted =
        processors < HYP_MODULE_LOADS_THREADS_MAX ? processors : HYP_MODULE_LOADS_THREADS_MAX;
    struct queue queue = {.context = context, .count = count};
    int begun = 0;
    queue.order = calloc(count + 1, sizeof *queue.order);
    for (size_t i = 0; i < count; i++) {
        loads[i].module = NULL;
        loads[i].message[0] = '\0';
        loads[i].status = TOL_OUT_OF_HOST_MEMORY;
        if (queue.order != NULL) queue.order[i] = &loads[i];
    }
    if (queue.order == NULL) return;
    qsort(queue.order, count, sizeof *queue.order, module_loads_by_bytes);
    /* This thread is one of them: without any other it loads all. */
    while (begun + 1 < wanted &&
           pthread_create(&threads[begun], NULL, module_loads_empty, &queue) == 0) {
        begun++;
    }
    (void)module_loads_empty(&queue);
    while (begun > 0) pthread_join(threads[--begun], NULL);
    free(queue.order);
}
