// Chapter 5. Grades bug 13.
//
// Serves: nn/layers/linear.h

#include "apps/book/bugs/4_grade.h"  // the same questions
