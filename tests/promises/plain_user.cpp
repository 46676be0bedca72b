// Chapter 8. A user's own program, for plain_build_test.cpp: it trains two small models and prints their fingerprint.
//
// It also calls the library's kernels itself, so that the compiler makes copies of them in this file. These are
// compiled with other options than the library's, and must not take the place of the library's own copies.
#include <iostream>

#include "autograd/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/formulas.h"
#include "autograd/ops/fused/attention/scores.h"
#include "autograd/ops/norm_rows.h"
#include "autograd/ops/softmax_rows.h"
#include "core/files/hash.h"
#include "core/products/transpose.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;
using namespace orrery::kernels;

namespace {

// Every kernel of a public or private header that the training below runs as well.
template <class T> double own_copies(const Tensor& x) {
  const i64 n = x.count();
  std::vector<T> y(x.data<T>(), x.data<T>() + n), z(y.size());
  add_to(n, x.data<T>(), y.data());
  softmax_row(y.data(), z.data(), n);
  softmax_derivative_row(z.data(), y.data(), y.data(), n);
  log_softmax_row(y.data(), z.data(), n);
  std::array<T, 4> table;
  store_statistics(x.data<T>(), 0, 1, n, 1e-5, LayerNormForm::root_of_variance_plus_eps, table.data());
  const auto statistics = RowStatistics<T>::load(table.data(), 0);
  normalized_row(x.data<T>(), statistics, x.data<T>(), y.data(), z.data(), n);
  const auto inner = row_inner(x.data<T>(), statistics, x.data<T>(), y.data(), n, fetch_nothing);
  norm_derivative_row(x.data<T>(), statistics, x.data<T>(), inner, y.data(), z.data(), n);
  add_norm_gradients<1>(x.data<T>(), table.data(), x.data<T>(), y.data(), z.data(), n);
  exp_and_add(n, x.data<T>(), y.data(), z.data());
  multiply(n, x.data<T>(), z.data());
  softmax_columns(Scores<T>{z.data(), 1, n, n}, SeenKeys(Mask(), {0, 0, 0, n, n, 1}, {0, 1}));
  transpose(Mat<const T>(y.data(), 1, n), z.data());
  return chunked_sum<T>(n, [&](i64 i) { return math::tanh(z[static_cast<size_t>(i)]) + math::normal(y[0]).cdf; });
}

double own_copies_of_operations(const Variable& x) {
  const Variable y =
      elementwise(formula::Gelu{}, x) + elementwise(formula::GeluTanh{}, elementwise(formula::Relu{}, x));
  backward(sum(y));
  return sum_of_squares(x.gradient());
}

template <class Model, class Loss> void train(Model& model, Fingerprint& fingerprint, const Loss& loss_of) {
  optim::AdamW adam(model.parameters(), {.weight_decay = 0.1});
  for (i64 step = 0; step < 5; ++step) {
    nn::Pass pass = nn::Pass::training(7, step);
    const Variable loss = loss_of(pass);
    backward(loss);
    adam.step(1e-2, 1.0);
    fingerprint.add(loss.value());
  }
  for (const NamedParameter& p : adam.parameters()) fingerprint.add(p.value.value());
}

Tensor tokens(const Shape& shape, i32 factor) {
  std::vector<i32> ids(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = 1 + static_cast<i32>(i) * factor % 30;
  return Tensor::of<i32>(shape, ids);
}

}  // namespace

// Takes the place of the C library's: where OMP_DYNAMIC is true, OpenMP asks how busy the machine is, and gives one
// thread on a busy one.
extern "C" int getloadavg(double* loads, int count) noexcept {
  std::fill_n(loads, count, 1000.0);
  return count;
}

int main() {
  Rng rng(1);
  Fingerprint fingerprint;
  nn::Transformer transformer(
      {.src_vocab_size = 31,
       .tgt_vocab_size = 31,
       .layer = {.d_model = 48, .num_heads = 4, .d_ff = 100, .activation = nn::Activation::gelu},
       .num_encoder_layers = 1,
       .num_decoder_layers = 1},
      rng);
  train(transformer, fingerprint, [&](nn::Pass& pass) {
    return transformer.loss(tokens({5, 17}, 3), tokens({5, 13}, 7), tokens({5, 13}, 11), pass);
  });
  nn::Gpt gpt({.vocab_size = 31, .layer = {.d_model = 40, .num_heads = 2, .d_ff = 160}, .num_layers = 2, .max_len = 40},
              rng);
  train(gpt, fingerprint, [&](nn::Pass& pass) { return gpt.loss(tokens({4, 40}, 5), tokens({4, 40}, 13), pass); });

  const Variable x = parameter(Tensor::of<float>({6}, {-2, -1, 0, 0.5, 1, 3}));
  const double used =
      own_copies<float>(x.value()) + own_copies<double>(x.value().to(f64)) + own_copies_of_operations(x);
  std::cout << fingerprint.hex() << '\n';
  return std::isnan(used) ? 1 : 0;
}
