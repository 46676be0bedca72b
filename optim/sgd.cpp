// Chapter 5. SGD: the update, one pass over each parameter.
//
// Serves: optim/adam.h
#include "optim/sgd.h"

#include "core/tensor_ops.h"

namespace orrery::optim {
namespace {

template <class T>
void descend(i64 n, T* p, const T* g, T rate, T decay, T factor) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) p[i] -= rate * (factor * g[i] + decay * p[i]);
}

template <class T>
void descend(i64 n, T* p, const T* g, T* b, T rate, T decay, T factor, T momentum) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    b[i] = momentum * b[i] + (factor * g[i] + decay * p[i]);
    p[i] -= rate * b[i];
  }
}

}  // namespace

SGD::SGD(const ParameterGroups& parameters, const SGDOptions& options)
    : Optimizer(parameters, options.weight_decay), options_(options) {
  check(options.momentum >= 0 && options.momentum < 1, "sgd", "momentum must be in [0, 1), got ", options.momentum);
  if (options.momentum == 0) return;
  for (const NamedParameter& p : this->parameters()) momentum_.push_back(zeros(p.value.shape(), p.value.dtype()));
}

std::map<std::string, Tensor> SGD::state() const {
  std::map<std::string, Tensor> result;
  for (size_t i = 0; i < momentum_.size(); ++i) result["momentum." + parameters()[i].name] = momentum_[i];
  return result;
}

Optimizer::Ready SGD::update(size_t i, const Update& u) {
  return dispatch_floating(u.parameter.dtype(), "sgd", [&](auto t) -> Ready {
    using T = decltype(t);
    T *p = u.parameter.write<T>(), *b = momentum_.empty() ? nullptr : momentum_[i].write<T>();
    const T* g = u.gradient.data<T>();
    const T rate = static_cast<T>(u.learning_rate), decay = static_cast<T>(u.weight_decay);
    const T factor = static_cast<T>(u.gradient_factor), momentum = static_cast<T>(options_.momentum);
    return {[=](i64 begin, i64 end) {
      if (b)
        descend(end - begin, p + begin, g + begin, b + begin, rate, decay, factor, momentum);
      else
        descend(end - begin, p + begin, g + begin, rate, decay, factor);
    }};
  });
}

}  // namespace orrery::optim
