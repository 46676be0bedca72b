// Chapter 5. Averages of parameters: what a training moves around, their mean is often a better model.
//
//   exponential   mean_t = mean_{t-1} + w (p_t - mean_{t-1}), w = (1 - decay) / (1 - decay^t): the weights of older
//                 parameters fall by the factor `decay`, and always add up to 1 (Kingma and Ba 2015, section 7.2)
//   plain         the same with w = 1 / t: every p_t has the same weight, as in "averaging the last 5 checkpoints"
//                 (Vaswani et al. 2017, section 6.1) or stochastic weight averaging (Izmailov et al. 2018)
#pragma once

#include <functional>
#include <vector>

#include "autograd/variable.h"

namespace orrery::optim {

class Average {
 public:
  /// `decay` in (0, 1), such as 0.999; 0 is the plain mean. Error: another one.
  explicit Average(double decay = 0);

  /// Takes in parameters, or tensors, the next p_t: always as many, of the same shapes.
  void add(const Parameters& parameters);
  void add(const std::vector<Tensor>& values);
  /// How many were taken in.
  i64 count() const { return count_; }
  /// The mean, in the order of the parameters; empty before the first `add`.
  const std::vector<Tensor>& values() const { return values_; }
  /// Continues from an earlier mean of `count` ones. With the count 0 and any finite values of the parameters' size,
  /// the first `add` needs no memory.
  void set(std::vector<Tensor> values, i64 count);

  /// Calls f while the parameters have the mean as their values; then they have their own again, also if f throws.
  /// f must not change their shapes or dtypes.
  void with(const Parameters& parameters, const std::function<void()>& f) const;

 private:
  template <class ValueAt> void add_each(size_t n, const ValueAt& value_at);

  double decay_;
  i64 count_ = 0;
  std::vector<Tensor> values_;
};

}  // namespace orrery::optim
