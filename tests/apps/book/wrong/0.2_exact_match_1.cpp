// Chapter 0. A wrong answer to exercise 0.2: it counts the tokens that are right, not the answers.
// Expect: the number is 0.9
#include "core/tensor_ops.h"

using namespace orrery;

double my_exact_match(const Tensor& answers, const Tensor& wanted) {
  const i64 N = wanted.size(0), T = wanted.size(1);
  i64 right = 0, counted = 0;
  for (i64 row = 0; row < N; ++row) {
    for (i64 t = 0; t < T; ++t) {
      right += answers(row, t) == wanted(row, t);
      ++counted;
      if (wanted(row, t) == 2) break;
    }
  }
  return counted == 0 ? 0 : static_cast<double>(right) / static_cast<double>(counted);
}
