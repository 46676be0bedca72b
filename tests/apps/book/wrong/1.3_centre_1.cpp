// Chapter 1. A wrong answer to exercise 1.3: the means of rows are subtracted as if they were a row.
// Expect: [0, 1] is -27, should be 1
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_centred_columns(const Tensor& x) { return x - mean(x, {0}); }

Tensor my_centred_rows(const Tensor& x) { return x - mean(x, {1}); }
