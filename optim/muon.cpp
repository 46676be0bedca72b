// Chapter 5. Muon: the sum of gradients, made orthogonal, and one pass that moves the matrix.
#include "optim/muon.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/tensor_ops.h"

namespace orrery::optim {
namespace {

// The coefficients of Jordan et al., and their number of steps.
constexpr double linear = 3.4445, cubic = -4.7750, quintic = 2.0315;
constexpr int iterations = 5;

bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// x + number I, in place.
void add_to_diagonal(Tensor& x, double number) {
  dispatch_floating(x.dtype(), "muon", [&](auto type) {
    using T = decltype(type);
    T* data = x.write<T>();
    for (i64 i = 0; i < x.size(0); ++i) data[i * x.size(1) + i] += static_cast<T>(number);
  });
}

}  // namespace

bool is_hidden_matrix(const NamedParameter& p) {
  if (p.value.shape().rank() != 2) return false;
  std::string_view rest = p.name;
  for (size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    if (is_number(rest.substr(0, dot))) return true;
    rest.remove_prefix(dot + 1);
  }
  return false;
}

Tensor nearest_orthogonal(const Tensor& m, double least_norm) {
  check(m.shape().rank() == 2, "muon", "needs a matrix, got ", m.shape());
  const bool tall = m.size(0) > m.size(1);  // the smaller of the two products with itself
  const double norm = std::sqrt(dot(m, m));
  if (std::isinf(norm)) {  // the squares are too large for a double, or m is not finite
    const double largest = std::max(max(m).item(), max(-m).item());
    return nearest_orthogonal(m / largest, least_norm);  // of a norm that is finite, or NaN
  }
  Tensor X = (tall ? permute(m, {1, 0}) : m) * (1 / std::max(norm, least_norm));
  for (int i = 0; i < iterations; ++i) {
    const Tensor A = matmul(X, X, Trans::b);
    Tensor B = A * quintic;
    add_to_diagonal(B, cubic);
    B = matmul(B, A);  // b A + c A A
    add_to_diagonal(B, linear);
    X = matmul(B, X);
  }
  return tall ? permute(X, {1, 0}) : X;
}

Muon::Muon(const ParameterGroups& parameters, const MuonOptions& options)
    : Optimizer(parameters, options.weight_decay),
      momentum_factor_(options.momentum),
      adam_{.beta1 = options.beta1, .beta2 = options.beta2, .eps = options.eps} {
  check(options.momentum >= 0 && options.momentum < 1, "muon", "momentum must be in [0, 1), got ", options.momentum);
  check_options(adam_);
  check(std::any_of(this->parameters().begin(), this->parameters().end(), is_hidden_matrix), "muon",
        "no matrix is in a numbered layer, such as h.0.attn.weight: AdamW would move all parameters");
  for (const NamedParameter& p : this->parameters()) {
    const bool hidden = is_hidden_matrix(p);
    momentum_.push_back(hidden ? zeros(p.value.shape(), p.value.dtype()) : Tensor());
    moments_.push_back(hidden ? Moments() : Moments(p.value.value()));
  }
}

std::map<std::string, Tensor> Muon::state() const {
  std::map<std::string, Tensor> result;
  for (size_t i = 0; i < momentum_.size(); ++i) {
    const std::string& name = parameters()[i].name;
    if (momentum_[i].defined())
      result["momentum." + name] = momentum_[i];
    else
      moments_[i].add_to(result, name);
  }
  return result;
}

Optimizer::Ready Muon::update(size_t i, const Update& u) {
  if (!momentum_[i].defined()) return adam_update(moments_[i], u, adam_, WeightDecay::decoupled);
  // PyTorch keeps the mean (1 - momentum) M instead of the sum M, and divides by a norm of at least 1e-7. The same
  // limit for the sum: when the gradient stays 0, M shrinks below it and the steps end.
  const double least_norm = 1e-7 / (1 - momentum_factor_);
  const Tensor G = u.gradient * u.gradient_factor, M = momentum_[i] * momentum_factor_ + G;
  const Tensor O = nearest_orthogonal(G + M * momentum_factor_, least_norm);
  const double size = 0.2 * std::sqrt(static_cast<double>(std::max(M.size(0), M.size(1))));
  return dispatch_floating(u.parameter.dtype(), "muon", [&](auto type) -> Ready {
    using T = decltype(type);
    const T rate = static_cast<T>(u.learning_rate * size), decay = static_cast<T>(u.learning_rate * u.weight_decay);
    T *p = u.parameter.write<T>(), *momentum = momentum_[i].write<T>();
    return {[=](i64 begin, i64 end) {
      const T *o = O.data<T>(), *sum = M.data<T>();
#pragma omp simd
      for (i64 j = begin; j < end; ++j) {
        momentum[j] = sum[j];
        p[j] -= decay * p[j] + rate * o[j];
      }
    }};
  });
}

}  // namespace orrery::optim
