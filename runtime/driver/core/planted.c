#include "core/planted.h"

atomic_bool tol_planted_no_lock;
