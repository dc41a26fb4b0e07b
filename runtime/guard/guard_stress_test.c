#include "test/test_device.h"
