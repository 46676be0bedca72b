// Chapter 5. Adam and AdamW: the update, one pass over each parameter.
//
// Both bias corrections are moved out of the loop, as at the end of section 2 of the paper. With s = sqrt(1 - beta2^t),
//   learning_rate m_hat / (sqrt(v_hat) + eps)  =  learning_rate s / (1 - beta1^t)  *  m / (sqrt(v) + eps s)
// Read next: apps/book/ch5/train.cpp
#include "optim/adam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensor_ops.h"

namespace orrery::optim {
namespace {

// The numbers of one update that are the same for every element.
template <class T> struct Coefficients {
  T beta1, beta2, one_minus_beta1, one_minus_beta2;
  T factor;         // clipping: g is multiplied by it
  T rate;           // learning_rate s / (1 - beta1^t)
  T eps;            // eps s
  T into_gradient;  // weight decay of Adam: this fraction of p is added to g
  T largest;        // |g| counts as at most this, so that its square is finite
  T decay;          // AdamW: p shrinks by this fraction; in f32, 1 - decay would lose most digits of a small decay
};

template <class T> void descend(i64 n, T* p, const T* gradient, T* m, T* v, Coefficients<T> c) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T whole = c.factor * gradient[i] + c.into_gradient * p[i];
    const T g = std::min(std::max(whole, -c.largest), c.largest);
    m[i] = c.beta1 * m[i] + c.one_minus_beta1 * g;
    v[i] = c.beta2 * v[i] + c.one_minus_beta2 * g * g;
    p[i] -= c.decay * p[i] + c.rate * m[i] / (std::sqrt(v[i]) + c.eps);
  }
}

}  // namespace

Moments::Moments(const Tensor& parameter)
    : m(zeros(parameter.shape(), parameter.dtype())),
      v(zeros(parameter.shape(), parameter.dtype())),
      step(full({}, 0, Dtype::i32)) {}

void Moments::add_to(std::map<std::string, Tensor>& state, const std::string& name) const {
  state["m." + name] = m;
  state["v." + name] = v;
  state["step." + name] = step;
}

void check_options(const AdamOptions& options) {
  check(options.beta1 >= 0 && options.beta1 < 1, "adam", "beta1 must be in [0, 1), got ", options.beta1);
  check(options.beta2 >= 0 && options.beta2 < 1, "adam", "beta2 must be in [0, 1), got ", options.beta2);
  check(options.eps >= 0 && std::isfinite(options.eps), "adam", "eps must be 0 or more and finite, got ", options.eps);
}

Adam::Adam(const ParameterGroups& parameters, const AdamOptions& options)
    : Adam(parameters, options, WeightDecay::into_gradient) {}

Adam::Adam(const ParameterGroups& parameters, const AdamOptions& options, WeightDecay decay)
    : Optimizer(parameters, options.weight_decay), options_(options), decay_(decay) {
  check_options(options);
  for (const NamedParameter& p : this->parameters()) moments_.emplace_back(p.value.value());
}

std::map<std::string, Tensor> Adam::state() const {
  std::map<std::string, Tensor> result;
  for (size_t i = 0; i < moments_.size(); ++i) moments_[i].add_to(result, parameters()[i].name);
  return result;
}

Optimizer::Ready Adam::update(size_t i, const Update& u) { return adam_update(moments_[i], u, options_, decay_); }

Optimizer::Ready adam_update(Moments& moments, const Optimizer::Update& u, const AdamOptions& options,
                             WeightDecay decay) {
  i32* update_count = moments.step.write<i32>();
  const i32 t = *update_count + 1;
  const double s = std::sqrt(1 - std::pow(options.beta2, t));
  const double rate = u.learning_rate * s / (1 - std::pow(options.beta1, t));
  const bool decoupled = decay == WeightDecay::decoupled;
  return dispatch_floating(u.parameter.dtype(), "adam", [&](auto type) -> Optimizer::Ready {
    using T = decltype(type);
    const Coefficients<T> c{.beta1 = static_cast<T>(options.beta1),
                            .beta2 = static_cast<T>(options.beta2),
                            .one_minus_beta1 = static_cast<T>(1 - options.beta1),
                            .one_minus_beta2 = static_cast<T>(1 - options.beta2),
                            .factor = static_cast<T>(u.gradient_factor),
                            .rate = static_cast<T>(rate),
                            .eps = static_cast<T>(options.eps * s),
                            .into_gradient = static_cast<T>(decoupled ? 0 : u.weight_decay),
                            .largest = std::sqrt(std::numeric_limits<T>::max()) / 2,
                            .decay = static_cast<T>(decoupled ? u.learning_rate * u.weight_decay : 0)};
    T *p = u.parameter.write<T>(), *m = moments.m.write<T>(), *v = moments.v.write<T>();
    const T* g = u.gradient.data<T>();
    return {[=](i64 begin, i64 end) { descend(end - begin, p + begin, g + begin, m + begin, v + begin, c); },
            update_count};
  });
}

}  // namespace orrery::optim
