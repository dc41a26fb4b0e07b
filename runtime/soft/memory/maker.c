/*
 * The call that the thread is in.
 */
#include "maker.h"

_Thread_local struct soft_maker soft_maker;
_Thread_local struct soft_made soft_made;
