// Chapter 6. Grades bug 19.
//
// Serves: autograd/ops/attention.cpp

#include "apps/book/bugs/2_grade.h"  // the same questions
