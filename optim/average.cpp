// Chapter 5. Averages of parameters.
#include "optim/average.h"

#include <cmath>

#include "core/tensor_ops.h"

namespace orrery::optim {

Average::Average(double decay) : decay_(decay) {
  check(decay >= 0 && decay < 1, "average", "the decay must lie in [0, 1), got ", decay);
}

void Average::add(const Parameters& parameters) {
  add_each(parameters.size(), [&](size_t i) -> const Tensor& { return parameters[i].value.value(); });
}

void Average::add(const std::vector<Tensor>& values) {
  add_each(values.size(), [&](size_t i) -> const Tensor& { return values[i]; });
}

template <class ValueAt> void Average::add_each(size_t n, const ValueAt& value_at) {
  const bool first = count_ == 0 && values_.empty();
  check(first || n == values_.size(), "average", "has ", values_.size(), " tensors, got ", n);
  const double t = static_cast<double>(count_ + 1), w = decay_ == 0 ? 1 / t : (1 - decay_) / (1 - std::pow(decay_, t));
  for (size_t i = 0; i < n; ++i) {
    if (first)
      values_.push_back(value_at(i).clone());
    else
      lerp_in_place(values_[i], value_at(i), w);
  }
  ++count_;
}

void Average::set(std::vector<Tensor> values, i64 count) {
  values_ = std::move(values);
  count_ = count;
}

void Average::with(const Parameters& parameters, const std::function<void()>& f) const {
  check(parameters.size() == values_.size(), "average", "has ", values_.size(), " tensors for ", parameters.size(),
        " parameters");
  struct Restore {
    Parameters parameters;
    std::vector<Tensor> own{};
    void put(const std::vector<Tensor>& values) {
      for (size_t i = 0; i < values.size(); ++i) copy_into(parameters[i].value.mutable_value(), values[i]);
    }
    ~Restore() { put(own); }
  } restore{parameters};
  std::vector<Tensor> own;
  for (const NamedParameter& p : parameters) own.push_back(p.value.value().clone());
  restore.own = std::move(own);
  restore.put(values_);
  f();
}

}  // namespace orrery::optim
