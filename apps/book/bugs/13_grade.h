// Chapter 5. Grades bug 13.

#include "apps/book/bugs/4_grade.h"  // the same questions
