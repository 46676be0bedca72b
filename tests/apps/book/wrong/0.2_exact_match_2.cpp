// Chapter 0. A wrong answer to exercise 0.2: what stands after the end mark is compared, too.
// Expect: the number is 0.5, should be 1
#include "core/tensor_ops.h"

using namespace orrery;

double my_exact_match(const Tensor& answers, const Tensor& wanted) {
  const i64 N = wanted.size(0);
  i64 exact = 0;
  for (i64 row = 0; row < N; ++row) exact += same_bits(answers.rows(row, row + 1), wanted.rows(row, row + 1));
  return N == 0 ? 0 : static_cast<double>(exact) / static_cast<double>(N);
}
