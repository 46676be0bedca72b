// Chapter 3. One exercise as a program: the student's file, and the file that grades it, named by the compiler's command
// line.
//
// Serves: autograd/check/proof.h
#include "apps/book/grade/prelude.h"

namespace student {
#include ORRERY_EXERCISE
#include ORRERY_GRADE
}  // namespace student

int main() { return orrery::book::grade_program(student::grade); }
