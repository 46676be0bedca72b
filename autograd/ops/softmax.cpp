// Chapter 4. Softmax, which turns numbers into probabilities, and its logarithm.
//
//   y_i = e^{x_i} / sum_j e^{x_j}        dy_i/dx_k = y_i ([i = k] - y_k),  so  dx_k = y_k (dy_k - sum_i dy_i y_i)
//   y_i = x_i - log sum_j e^{x_j}        dy_i/dx_k = [i = k] - e^{y_k},    so  dx_k = dy_k - e^{y_k} sum_i dy_i
// Both work along the last axis (on rows). [i = k] is 1 if i = k, else 0. The outputs of softmax always add up to 1, so
// dx is 0 if all dy_i are equal. The next file computes one row.
// Read next: autograd/ops/softmax_rows.h
#include "autograd/ops/softmax.h"

#include "autograd/apply.h"
#include "autograd/ops/softmax_rows.h"

namespace orrery {
using namespace kernels;
namespace {

struct Softmax {
  static constexpr std::string_view name = "softmax";
  Saved y;  // backward needs only the output
  Tensor forward(const Tensor& x) { return y = map_rows(x, name, softmax_row); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, map_rows(y, dy, name, softmax_derivative_row)); }
};

struct LogSoftmax {
  static constexpr std::string_view name = "log_softmax";
  Saved y;
  Tensor forward(const Tensor& x) { return y = map_rows(x, name, log_softmax_row); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, map_rows(y, dy, name, log_softmax_derivative_row)); }
};

}  // namespace

Variable softmax(const Variable& x) { return apply(Softmax{}, x); }
Variable log_softmax(const Variable& x) { return apply(LogSoftmax{}, x); }

}  // namespace orrery
