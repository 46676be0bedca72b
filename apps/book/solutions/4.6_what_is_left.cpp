// Chapter 4. Solution of exercise 4.6: what layer norm's gradient cannot say, and what eps leaves of it.
//
// For a row x, with x^ and r as in the text, no weight and dy = dL/dy: without eps the sum of dx_i x^_i is exactly 0.
// With eps it is not. Return this sum as a formula of dy, x^, r and eps, without computing dx.
#include "core/tensor_ops.h"

using namespace orrery;

// sum_i dx_i x^_i for one row; dot(a, b) is sum_i a_i b_i.
double along_x_hat(const Tensor& dy, const Tensor& x_hat, double r, double eps) {
  // dx = r (dy - mean(dy) - x^ mean(dy x^)); x^ adds up to 0, and its squares to n var r^2 = n (1 - eps r^2).
  return eps * r * r * r * dot(dy, x_hat);
}
