#include "sabotage_scene.h"

#include "files/atomic_file.h"
#include "harness/sabotage.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <string.h>

struct tol_driver *scene_driver;
struct tol_context *scene_context;

#define MUST(call) cr_assert((call) == TOL_OK, "%s", tol_message())

void scene_open(const char *saboteur) {
    MUST(tol_driver_open(hyp_session_soft_library(), &scene_driver));
    cr_assert(hyp_sabotage_install(saboteur, scene_driver), "%s", hyp_error());
    MUST(tol_context_create(scene_driver, 0, &scene_context));
}

void scene_close(void) {
    tol_context_destroy(scene_context);
    tol_interpose_remove(scene_driver);
    tol_driver_close(scene_driver);
    scene_context = NULL;
    scene_driver = NULL;
}

unsigned scene_count(const char *ptx, const char *kernel, unsigned launches,
                     struct tol_launch_shape shape) {
    struct tol_module *module = NULL;
    struct tol_kernel *found = NULL;
    struct tol_stream *stream = NULL;
    struct tol_buffer *count = NULL;
    unsigned value = 0;
    MUST(tol_module_load(scene_context, ptx, strlen(ptx) + 1, NULL, &module));
    MUST(tol_module_kernel(module, kernel, &found));
    MUST(tol_stream_create(scene_context, NULL, &stream));
    MUST(tol_buffer_create(scene_context, 1, sizeof value, &count));
    MUST(tol_buffer_write(count, &value, sizeof value));
    CUdeviceptr address = tol_buffer_address(count);
    for (unsigned i = 0; i < launches; i++) {
        MUST(tol_launch(stream, found, shape, TOL_ARGUMENTS(address)));
    }
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(count, &value, sizeof value));
    tol_buffer_destroy(count);
    tol_stream_destroy(stream);
    tol_module_destroy(module);
    return value;
}
