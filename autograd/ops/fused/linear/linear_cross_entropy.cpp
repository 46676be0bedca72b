// Chapter 8. The head of a language model and its loss as one operation: large logits never exist as a whole.
//
//   composed   cross_entropy(linear(x, W, b), targets)        z = x W^T + b, L(z), dx = dz W, dW = dz^T x, db = sum dz
//   here       the same for a chunk of rows at a time, forward and backward together
// Logits are by far the largest tensor of a model with a large vocabulary (82 MB for 2,048 tokens of 10,000 classes).
// In the composed form they go through memory seven times. Here a chunk of rows stays in a cache that all cores share:
// its logits are overwritten with their gradient, which the products for dx and dW use at once. So the gradients are
// computed in the forward pass, as if dy were 1; backward multiplies them by the actual dy (as in Liger Kernel, Hsu et
// al. 2024). If there are several chunks, W is transposed once for all of them, and dW^T = x^T dz is added up instead
// of dW = dz^T x: the left factor of that product, which has to be transposed, is then the narrow one.
// This saves the memory of the logits and of their gradient (apps/measure/bench/README.md).
// Shapes: x [..., d], W [K, d], b [K] or undefined, targets i32 [...].
#include "autograd/ops/fused/linear/linear_cross_entropy.h"

#include "autograd/apply.h"
#include "autograd/ops/fused/linear/linear_rows.h"
#include "autograd/ops/softmax_rows.h"
#include "autograd/ops/target_distribution.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

struct LinearCrossEntropy {
  static constexpr std::string_view name = "linear_cross_entropy";
  TargetDistribution q;
  std::array<bool, 3> asked;  // which gradients backward will be asked for: x, W, b
  Tensor dx, dW, db;          // for dy = 1

  Tensor forward(const Tensor& x, const Tensor& W, const Tensor& b) {
    check_linear(name, x, W, b);
    const i64 K = W.size(0);
    const i64 rows = q.prepare(name, x.shape().without_last(), K), length = row_chunk(rows, K, x.dtype());
    const bool several = rows > length;
    const Tensor x_rows = with_harmless_ignored_rows(as_rows(x)), W_T = several ? permute(W, {1, 0}) : W;
    const i32* target = q.targets.get().data<i32>();
    Tensor losses = Tensor::empty({rows}, f64), logits = Tensor::empty({length, K}, x.dtype());
    if (asked[0]) dx = Tensor::empty(x.shape(), x.dtype());
    if (asked[1]) dW = rows == 0 ? zeros(W_T.shape(), x.dtype()) : Tensor::empty(W_T.shape(), x.dtype());
    if (asked[2]) db = zeros({K}, x.dtype());
    for (i64 begin = 0; begin < rows; begin += length) {
      const i64 end = std::min(rows, begin + length);
      const Tensor part = x_rows.rows(begin, end);
      Tensor z = logits.rows(0, end - begin);
      matmul_into(z, part, W_T, several ? Trans::none : Trans::b, false);
      const Tensor sums = loss_and_gradient(z, b, target + begin, losses.write<double>() + begin);
      if (asked[0]) {
        Tensor to = as_rows(dx).rows(begin, end);
        matmul_into(to, z, W, Trans::none, false);
      }
      if (asked[1] && several) matmul_into(dW, part, z, Trans::a, begin > 0);
      if (asked[1] && !several) matmul_into(dW, z, part, Trans::a, false);
      if (asked[2]) add_in_place(db, sums);
    }
    if (asked[1] && several) dW = permute(dW, {1, 0});
    return full({}, sum(losses).item() / q.divisor, x.dtype());
  }

  void backward(const Tensor& dy, Grads& grads) {
    const double factor = dy.item();
    size_t input = 0;
    for (Tensor* gradient : {&dx, &dW, &db}) {
      if (grads.wanted(input) && gradient->defined()) {
        if (grads.keeps())
          *gradient = scale(*gradient, factor);
        else if (factor != 1)
          scale_in_place(*gradient, factor);
        grads.add(input, std::move(*gradient));
      }
      ++input;
    }
  }

 private:
  // x [rows, d], with 0 in ignored rows that hold NaN or infinity: dz is 0 there, but dW = dz^T x multiplies it by x.
  Tensor with_harmless_ignored_rows(const Tensor& x) const {
    Tensor y = x;
    const FlushDenormals flush;
    dispatch_floating(x.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const i32* target = q.targets.get().data<i32>();
      const i64 d = x.size(1);
      for (i64 row = 0; row < x.size(0); ++row) {
        if (target[row] != q.options.ignore_index || all_finite(x, row * d, (row + 1) * d)) continue;
        if (y.shares_memory_with(x)) y = x.clone();
        std::fill_n(y.write<T>() + row * d, d, T{0});
      }
    });
    return y;
  }

  // Turns one row of x W^T into dL/dz and adds it to `sums` if there is a bias. Returns the loss of the row. `factor`
  // is 1 / q.divisor.
  template <class T> double loss_row(i64 K, i32 target, const T* bias, T factor, T* z, T* sums) const {
    const double on = q.on, off = q.off;
    if (bias) add_to(K, bias, z);
    const T m = row_shift(z, K);
    const double at_target = static_cast<double>(z[target] - m);
    // The second sum also replaces z_k by e^{z_k - m}, after the first has read it.
    const auto [differences, exps] = chunked_sums<T>(
        K, fetch_nothing, [=](i64 k) { return z[k] - m; }, [=](i64 k) { return z[k] = math::exp(z[k] - m); });
    const T p_factor = static_cast<T>(static_cast<double>(factor) / exps), off_factor = static_cast<T>(off) * factor;
#pragma omp simd
    for (i64 k = 0; k < K; ++k) z[k] = z[k] * p_factor - off_factor;
    z[target] += static_cast<T>(off - on) * factor;
    if (bias) add_to(K, z, sums);
    // -sum_k q_k log p_k = log total - (on - off) (z_target - m) - off sum_k (z_k - m)
    return std::log(exps) - (on - off) * at_target - (off == 0 ? 0 : off * differences);
  }

  // Overwrites rows of x W^T with dL/dz and writes the losses of the rows to `loss`. Returns db.
  Tensor loss_and_gradient(Tensor& logits, const Tensor& b, const i32* target, double* loss) const {
    const i64 K = logits.size(1);
    return dispatch_floating(logits.dtype(), name, [&](auto t) {
      using T = decltype(t);
      T* z = logits.write<T>();
      const T* bias = data_or_null<T>(b);
      const T factor = static_cast<T>(1 / q.divisor);
      const auto of_rows = [=, this](i64 begin, i64 end, T* sums) {
        for (i64 row = begin; row < end; ++row) {
          if (target[row] == q.options.ignore_index) {
            loss[row] = 0;
            std::fill_n(z + row * K, K, T{0});
          } else {
            loss[row] = loss_row(K, target[row], bias, factor, z + row * K, sums);
          }
        }
      };
      return strip_sums<T>(1, logits.size(0), K, of_rows).reshape({K});
    });
  }
};

}  // namespace

Variable linear_cross_entropy(const Variable& x, const Variable& weight, const Variable& bias, const Tensor& targets,
                              const CrossEntropyOptions& options) {
  const auto records = [](const Variable& input) { return tape::records(std::array{&input}); };
  return apply(LinearCrossEntropy{{targets, options}, {records(x), records(weight), records(bias)}, {}, {}, {}}, x,
               weight, bias);
}

}  // namespace orrery
