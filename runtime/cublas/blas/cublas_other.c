/*
 * The functions of cublas_other.def, which return CUBLAS_STATUS_NOT_SUPPORTED and say so once.
 */
#include "base/cublas_handle.h"

#define SDCZ(versions, name) SD(versions, name) CZ(versions, name)
#define SD(versions, name) versions(cublasS##name) versions(cublasD##name)
#define CZ(versions, name) versions(cublasC##name) versions(cublasZ##name)
#define PLAIN(name) CUBLAS_REFUSED(name)
#define BOTH_SIZES(name) CUBLAS_REFUSED(name) CUBLAS_REFUSED(name##_64)
#define OLD_AND_V2(name) CUBLAS_REFUSED(name) CUBLAS_REFUSED(name##_v2)
#define OLD_AND_NEW(name) OLD_AND_V2(name) CUBLAS_REFUSED(name##_v2_64)

#define CUBLAS_ROW(types, versions, name) types(versions, name)
#define CUBLAS_NAME(name) CUBLAS_REFUSED(name)
#include "cublas_other.def"
