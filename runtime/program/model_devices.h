/*
 * Model devices: which devices `model run` and `model bench` let compute a model together. One
 * thread.
 */
#ifndef HYP_MODEL_DEVICES_H
#define HYP_MODEL_DEVICES_H

#include "loaded.h"

struct hyp_model_devices {
    unsigned count; /* 0: the session's device alone */
    int ordinals[KN_COLLECTIVE_RANKS_MAX];
    struct tol_context *contexts[KN_COLLECTIVE_RANKS_MAX];
};

/* "0,1" or "1". false: it is no list of different devices; hyp_error(). */
bool hyp_model_devices_read(const char *text, struct hyp_model_devices *devices);

/* "auto", "direct" or "flags". false: none of these; hyp_error(). */
bool hyp_model_way(const char *name, enum kn_collective_way *way);

/* Makes a context for each, or for device `alone` if there is no list, and sets the options' peers,
 * which are valid until hyp_model_devices_close. */
tol_status hyp_model_devices_open(struct hyp_model_devices *devices, struct tol_driver *driver,
                                  int alone, struct tol_load_options *options);
void hyp_model_devices_close(struct hyp_model_devices *devices);

/* "NVIDIA H100", or "2 of NVIDIA H100". In a static buffer. */
const char *hyp_model_devices_name(const struct hyp_model_devices *devices);

#endif
