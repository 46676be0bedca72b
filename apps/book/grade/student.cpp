// Chapter 3. An exercise as a program: the student's file, and the file that grades it, which asks what belongs to the
// exercise of this number. The compiler's command line names all three, or apps/book/grade/exercise writes them in
// their places.
#include "apps/book/grade/prelude.h"

#define EXERCISE ORRERY_NUMBER
namespace student {
#include ORRERY_EXERCISE
#include ORRERY_GRADE
}  // namespace student

int main() { return orrery::book::grade_program(student::grade); }
