/*
 * What differs between the libraries of CUDA 12 and 13: compiled once for each, with CUDART_MAJOR.
 */
#include "cublas_status.h"

const int cublas_version = CUDART_MAJOR == 12 ? 120900 : 130100;
const int cublas_cudart_version = CUDART_MAJOR == 12 ? 12090 : 13000;
