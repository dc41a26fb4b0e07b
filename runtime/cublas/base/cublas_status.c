#include "cublas_status.h"

static const struct {
    cublasStatus_t status;
    const char *name, *text;
} statuses[] = {
#define CUBLAS_STATUS(name, value, text) {value, "CUBLAS_STATUS_" #name, text},
#include "cublas_statuses.def"
};
enum { STATUSES = sizeof statuses / sizeof statuses[0] };

const char *cublas_status_name(cublasStatus_t status) {
    for (int i = 0; i < STATUSES; i++) {
        if (statuses[i].status == status) return statuses[i].name;
    }
    return "CUBLAS_STATUS_UNKNOWN";
}

const char *cublas_status_text(cublasStatus_t status) {
    for (int i = 0; i < STATUSES; i++) {
        if (statuses[i].status == status) return statuses[i].text;
    }
    return "an unknown status";
}

cublasStatus_t cublas_property(int property, int *value) {
    const int parts[] = {[LIBRARY_MAJOR] = cublas_version / 10000,
                         [LIBRARY_MINOR] = cublas_version / 100 % 100,
                         [LIBRARY_PATCH] = cublas_version % 100};
    if (value == NULL || property < LIBRARY_MAJOR || property > LIBRARY_PATCH)
        return CUBLAS_STATUS_INVALID_VALUE;
    *value = parts[property];
    return CUBLAS_STATUS_SUCCESS;
}
