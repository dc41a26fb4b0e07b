/*
 * Counts launches, and writes the counts when the process ends.
 */
#include "usage.h"

#include "base/options.h"
#include "grid/grid.h"
#include "state/driver_state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t kernels, launches; /* guarded by soft_lock */

void soft_usage_launch(struct soft_function *function) {
    launches++;
    kernels += !function->is_launched;
    function->is_launched = true;
}

/* One write, so that lines of processes that share the file are not mixed. */
static void usage_at_exit(void) {
    char line[200];
    const char *path = soft_options()->summary;
    if (soft_state_is_forked()) return; /* the parent writes it */
    pthread_mutex_lock(&soft_lock);
    int length = snprintf(line, sizeof line,
                          "{\"process\": %ld, \"kernels\": %llu, \"launches\": %llu, "
                          "\"instructions\": %llu}\n",
                          (long)getpid(), (unsigned long long)kernels, (unsigned long long)launches,
                          (unsigned long long)soft_launch_executed());
    pthread_mutex_unlock(&soft_lock);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, (size_t)length) != length) {
        fprintf(stderr, "tollens-soft: cannot write the summary to %s: %s\n", path,
                strerror(errno));
    }
    if (file >= 0) close(file);
}

void soft_usage_watch_exit(void) {
    static bool watched;
    const char *path = soft_options()->summary;
    if (path == NULL || path[0] == '\0') return;
    pthread_mutex_lock(&soft_lock);
    if (!watched) watched = atexit(usage_at_exit) == 0;
    pthread_mutex_unlock(&soft_lock);
}
