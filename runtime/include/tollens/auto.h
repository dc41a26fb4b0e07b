/*
 * Auto: variables that release their handle at the end of their scope.
 *
 * A pointer declared with one of these attributes is destroyed or closed when it goes out of scope,
 * by return, break, goto or falling off the end. The last declared is destroyed first. Initialise
 * the pointer with NULL; destroying NULL is a no-op. gcc and clang only (attribute cleanup).
 *
 *     tol_auto_stream struct tol_stream *stream = NULL;
 *     if (tol_stream_create(context, NULL, &stream) != TOL_OK) return 1;
 */
#ifndef TOLLENS_AUTO_H
#define TOLLENS_AUTO_H

#include "batch.h"
#include "copy.h"
#include "event.h"
#include "graph.h"
#include "host_function.h"
#include "launch.h"
#include "pipeline.h"
#include "pool.h"
#include "stream_pool.h"
#include "transfer.h"
#include "vram.h"

#if defined(__GNUC__)

#define TOL_AUTO(type, destroy)                                                                    \
    static inline void tol_auto_end_##type(struct tol_##type **handle) {                           \
        destroy(*handle);                                                                          \
    }
TOL_AUTO(driver, tol_driver_close)
TOL_AUTO(context, tol_context_destroy)
TOL_AUTO(stream, tol_stream_destroy)
TOL_AUTO(event, tol_event_destroy)
TOL_AUTO(module, tol_module_destroy)
TOL_AUTO(buffer, tol_buffer_destroy)
TOL_AUTO(pinned, tol_pinned_destroy)
TOL_AUTO(pool, tol_pool_destroy)
TOL_AUTO(graph, tol_graph_destroy)
TOL_AUTO(graph_exec, tol_graph_exec_destroy)
TOL_AUTO(batch, tol_batch_destroy)
TOL_AUTO(pipeline, tol_pipeline_destroy)
TOL_AUTO(stream_pool, tol_stream_pool_destroy)
TOL_AUTO(transfer, tol_transfer_destroy)
TOL_AUTO(vram_context, tol_vram_context_destroy)
#undef TOL_AUTO

#define tol_auto_driver __attribute__((cleanup(tol_auto_end_driver)))
#define tol_auto_context __attribute__((cleanup(tol_auto_end_context)))
#define tol_auto_stream __attribute__((cleanup(tol_auto_end_stream)))
#define tol_auto_event __attribute__((cleanup(tol_auto_end_event)))
#define tol_auto_module __attribute__((cleanup(tol_auto_end_module)))
#define tol_auto_buffer __attribute__((cleanup(tol_auto_end_buffer)))
#define tol_auto_pinned __attribute__((cleanup(tol_auto_end_pinned)))
#define tol_auto_pool __attribute__((cleanup(tol_auto_end_pool)))
#define tol_auto_stream_pool __attribute__((cleanup(tol_auto_end_stream_pool)))
#define tol_auto_graph __attribute__((cleanup(tol_auto_end_graph)))
#define tol_auto_graph_exec __attribute__((cleanup(tol_auto_end_graph_exec)))
#define tol_auto_batch __attribute__((cleanup(tol_auto_end_batch)))
#define tol_auto_pipeline __attribute__((cleanup(tol_auto_end_pipeline)))
#define tol_auto_transfer __attribute__((cleanup(tol_auto_end_transfer)))
#define tol_auto_vram_context __attribute__((cleanup(tol_auto_end_vram_context)))

#endif
#endif
