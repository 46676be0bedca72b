// Chapter 4. A wrong answer to exercise 4.6: eps takes the place of eps r^2.
// Expect: FAILED  a row with a small variance
#include "core/tensor_ops.h"

using namespace orrery;

// sum_i dx_i x^_i for one row; dot(a, b) is sum_i a_i b_i.
double along_x_hat(const Tensor& dy, const Tensor& x_hat, double r, double eps) { return eps * r * dot(dy, x_hat); }
