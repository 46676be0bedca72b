// The templates of tests/instantiated.h, compiled.
#define ORRERY_INSTANTIATE template
#include "tests/instantiated.h"
