// Chapter 6. Grades bug 19.

#include "apps/book/bugs/2_grade.h"  // the same questions
