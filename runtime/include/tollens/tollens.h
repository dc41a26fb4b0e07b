/*
 * Tollens: includes the whole runtime, from the highest level down. Users include only this header.
 */
#ifndef TOLLENS_H
#define TOLLENS_H

#include "auto.h"

#include "launch.h"

#include "tokenizer.h"
#include "gguf.h"

#include "vram.h"
#include "batch.h"
#include "transfer.h"
#include "graph.h"
#include "pipeline.h"

#include "pool_watch.h"
#include "ptx_builder.h"

#include "copy.h"
#include "pool.h"
#include "stream_pool.h"
#include "host_function.h"

#include "module.h"
#include "stream.h"
#include "event.h"
#include "memory.h"
#include "pinned.h"

#include "device.h"
#include "context.h"
#include "guard.h"
#include "guard_worker.h"
#include "health.h"
#include "links.h"
#include "trace.h"
#include "watch.h"

#include "driver.h"
#include "interpose.h"

#include "hdr.h"
#include "status.h"

#endif
