// Chapter 3. Functions with a right backward and several wrong ones, for the checker to tell apart.
#pragma once

#include <cmath>
#include <functional>

#include "autograd/apply.h"
#include "autograd/check/gradcheck.h"
#include "core/kernels/elementwise.h"
#include "tests/core/support.h"

namespace orrery::wrong {

using small::normal;
using Inputs = std::vector<Tensor>;

// An operation whose two halves the test chooses; a gradient that is not defined is not passed on.
struct Custom {
  static constexpr std::string_view name = "custom";
  std::function<Tensor(const Inputs&)> value;
  std::function<Inputs(const Inputs&, const Tensor& dy)> gradient;
  Inputs saved;

  Tensor forward(std::span<const Tensor> inputs) {
    saved.assign(inputs.begin(), inputs.end());
    return value(saved);
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Inputs g = gradient(saved, dy);
    for (size_t i = 0; i < g.size(); ++i) {
      if (g[i].defined()) dx.add(i, g[i]);
    }
  }
};

// One function, and several backwards for it.
struct Case {
  std::string name;
  Inputs inputs;
  std::function<Tensor(const Inputs&)> value;
  std::function<Inputs(const Inputs&, const Tensor&)> right;
  std::vector<std::function<Inputs(const Inputs&, const Tensor&)>> wrong;
};

inline GradcheckReport check_with(const Case& c, const std::function<Inputs(const Inputs&, const Tensor&)>& gradient) {
  return gradcheck(
      [&](const std::vector<Variable>& x) {
        return apply(Custom{c.value, gradient, {}}, std::span<const Variable>(x));
      },
      c.inputs);
}

inline Tensor softmax_of(const Tensor& x) {
  const Tensor e = kernels::map(x, "exp", [](auto v) { return std::exp(v); });
  return e / sum(e, {-1}, true);
}

// x - mean, 1 / deviation, and their product.
struct Normalised {
  Tensor reciprocal, y;
  explicit Normalised(const Tensor& x) {
    const Tensor centred = x - mean(x, {-1}, true);
    reciprocal =
        kernels::map(mean(centred * centred, {-1}, true), "rsqrt", [](auto v) { return 1 / std::sqrt(v + 1e-5); });
    y = centred * reciprocal;
  }
};

inline Tensor tanh_derivative(const Tensor& x) {
  return kernels::map(x, "tanh", [](auto v) { return 1 - std::tanh(v) * std::tanh(v); });
}

inline Case tanh_case() {
  Case c{"tanh",
         {normal({3, 4}, 7)},
         [](const Inputs& x) { return kernels::map(x[0], "tanh", [](auto v) { return std::tanh(v); }); },
         [](const Inputs& x, const Tensor& dy) { return Inputs{dy * tanh_derivative(x[0])}; },
         {}};
  for (const double factor : {0.0, -1.0, 2.0, 1.0001, 1.0 / 3.0, std::nan("")}) {
    c.wrong.push_back(
        [factor](const Inputs& x, const Tensor& dy) { return Inputs{dy * tanh_derivative(x[0]) * factor}; });
  }
  c.wrong.push_back([](const Inputs&, const Tensor&) { return Inputs{Tensor()}; });
  c.wrong.push_back([](const Inputs& x, const Tensor& dy) {  // one element in twelve is not a number
    Tensor g = dy * tanh_derivative(x[0]);
    g.write<double>()[5] = std::nan("");
    return Inputs{g};
  });
  return c;
}

inline Case product_case() {
  Case c{"matmul",
         {normal({3, 3}, 7), normal({3, 3}, 8)},
         [](const Inputs& x) { return matmul(x[0], x[1]); },
         [](const Inputs& x, const Tensor& dy) {
           return Inputs{matmul(dy, x[1], Trans::b), matmul(x[0], dy, Trans::a)};
         },
         {}};
  c.wrong.push_back([](const Inputs& x, const Tensor& dy) { return Inputs{matmul(dy, x[1], Trans::b), Tensor()}; });
  c.wrong.push_back([](const Inputs& x, const Tensor& dy) {
    return Inputs{matmul(dy, x[1]), matmul(x[0], dy, Trans::a)};
  });
  c.wrong.push_back([](const Inputs& x, const Tensor& dy) {
    return Inputs{matmul(dy, x[1], Trans::b), permute(matmul(x[0], dy, Trans::a), {1, 0})};
  });
  return c;
}

inline Case softmax_case() {
  return {
      "softmax",
      {normal({3, 5}, 7)},
      [](const Inputs& x) { return softmax_of(x[0]); },
      [](const Inputs& x, const Tensor& dy) {
        const Tensor y = softmax_of(x[0]);
        return Inputs{y * (dy - sum(dy * y, {-1}, true))};
      },
      {[](const Inputs& x, const Tensor& dy) { return Inputs{softmax_of(x[0]) * dy}; },  // without the inner product
       [](const Inputs& x, const Tensor& dy) {                                           // over the wrong axis
         const Tensor y = softmax_of(x[0]);
         return Inputs{y * (dy - sum(dy * y, {0}, true))};
       },
       [](const Inputs& x, const Tensor& dy) { return Inputs{dy - softmax_of(x[0]) * sum(dy, {-1}, true)}; }}};
}

inline Case layer_norm_case() {
  return {"layer norm",
          {normal({3, 6}, 7)},
          [](const Inputs& x) { return Normalised(x[0]).y; },
          [](const Inputs& x, const Tensor& dy) {
            const Normalised n(x[0]);
            return Inputs{n.reciprocal * (dy - mean(dy, {-1}, true) - n.y * mean(dy * n.y, {-1}, true))};
          },
          {[](const Inputs& x, const Tensor& dy) {  // without the mean's term
             const Normalised n(x[0]);
             return Inputs{n.reciprocal * (dy - n.y * mean(dy * n.y, {-1}, true))};
           },
           [](const Inputs& x, const Tensor& dy) {  // without the variance's term
             const Normalised n(x[0]);
             return Inputs{n.reciprocal * (dy - mean(dy, {-1}, true))};
           },
           [](const Inputs& x, const Tensor& dy) {  // sums in place of means
             const Normalised n(x[0]);
             return Inputs{n.reciprocal * (dy - sum(dy, {-1}, true) - n.y * sum(dy * n.y, {-1}, true))};
           }}};
}

inline Case sum_case() {
  return {"sum over axis 0",
          {normal({4, 4}, 7)},
          [](const Inputs& x) { return sum(x[0], {0}); },
          [](const Inputs& x, const Tensor& dy) { return Inputs{broadcast_to(dy, x[0].shape())}; },
          {[](const Inputs& x, const Tensor& dy) {
             return Inputs{broadcast_to(dy.reshape({4, 1}), x[0].shape())};
           },
           [](const Inputs& x, const Tensor& dy) { return Inputs{broadcast_to(dy, x[0].shape()) * 0.25}; }}};
}

}  // namespace orrery::wrong
