// Chapter 5. SGD: the update, one pass over each parameter.
#include "optim/sgd.h"

#include "core/tensor_ops.h"

namespace orrery::optim {
namespace {

// The numbers of one update that are the same for every element.
template <class T> struct Coefficients {
  T factor;  // clipping: g is multiplied by it
  T rate, decay, momentum;
};

template <class T> void descend(i64 n, T* p, const T* g, Coefficients<T> c) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) p[i] -= c.rate * (c.factor * g[i] + c.decay * p[i]);
}

template <class T> void descend(i64 n, T* p, const T* g, T* b, Coefficients<T> c) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    b[i] = c.momentum * b[i] + (c.factor * g[i] + c.decay * p[i]);
    p[i] -= c.rate * b[i];
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
    const Coefficients<T> c{.factor = static_cast<T>(u.gradient_factor),
                            .rate = static_cast<T>(u.learning_rate),
                            .decay = static_cast<T>(u.weight_decay),
                            .momentum = static_cast<T>(options_.momentum)};
    return {[=](i64 begin, i64 end) {
      if (b)
        descend(end - begin, p + begin, g + begin, b + begin, c);
      else
        descend(end - begin, p + begin, g + begin, c);
    }};
  });
}

}  // namespace orrery::optim
