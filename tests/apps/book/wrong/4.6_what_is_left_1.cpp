// Chapter 4. A wrong answer to exercise 4.6: 0, as the sum is without eps.
// Expect: FAILED  a variance of 0.5 and eps = 0.5
#include "core/tensor_ops.h"

using namespace orrery;

// sum_i dx_i x^_i for one row; dot(a, b) is sum_i a_i b_i.
double along_x_hat(const Tensor& dy, const Tensor& x_hat, double r, double eps) { return 0; }
