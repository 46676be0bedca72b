// Chapter 5. SGD: the update, one pass over each parameter.
//
// Read next: optim/adam.h
#include "optim/sgd.h"

#include "core/parallel.h"
#include "core/tensor_ops.h"

namespace orrery::optim {
namespace {

template <class T>
void descend(i64 n, T* p, const T* g, T rate, T decay) {
  parallel_for(n, elementwise_grain, [=](i64 begin, i64 end) {
#pragma omp simd
    for (i64 i = begin; i < end; ++i) p[i] -= rate * (g[i] + decay * p[i]);
  });
}

template <class T>
void descend(i64 n, T* p, const T* g, T* b, T rate, T decay, T momentum) {
  parallel_for(n, elementwise_grain, [=](i64 begin, i64 end) {
#pragma omp simd
    for (i64 i = begin; i < end; ++i) {
      b[i] = momentum * b[i] + (g[i] + decay * p[i]);
      p[i] -= rate * b[i];
    }
  });
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

void SGD::update(size_t i, const Update& u) {
  dispatch_floating(u.parameter.dtype(), "sgd", [&](auto t) {
    using T = decltype(t);
    T* p = u.parameter.write<T>();
    const T* g = u.gradient.data<T>();
    const i64 n = u.parameter.count();
    const T rate = static_cast<T>(u.learning_rate), decay = static_cast<T>(u.weight_decay);
    if (momentum_.empty()) {
      descend(n, p, g, rate, decay);
    } else {
      descend(n, p, g, momentum_[i].write<T>(), rate, decay, static_cast<T>(options_.momentum));
    }
  });
}

}  // namespace orrery::optim
