// Chapter 7. The bug zoo: what is done at the wrong time, or never, in the steps of a training or of a decoder; and the
// values by hand that show it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <sstream>
#include <vector>

#include "apps/check/zoo/bug_zoo.h"
#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "optim/optim.h"

// The programs of apps/book/bugs: their mistakes are the zoo's.
namespace orrery::bugs {
namespace bug_27 {
#include "apps/book/bugs/27.cpp"
}
namespace bug_29 {
#include "apps/book/bugs/29.cpp"
}
namespace bug_31 {
#include "apps/book/bugs/31.cpp"
}
namespace bug_32 {
#include "apps/book/bugs/32.cpp"
}
namespace bug_33 {
#include "apps/book/bugs/33.cpp"
}
}  // namespace orrery::bugs

namespace orrery::nn {
namespace {

struct AdamThatCountsSteps : bugs::bug_27::MyAdam {
  void step(std::vector<double>& p, const std::vector<double>& g, double rate) {
    m.resize(p.size());
    v.resize(p.size());
    ++t;
    for (size_t i = 0; i < p.size(); ++i) p[i] -= rate * move(i, g[i], t);
  }
};

using Numbers = std::vector<double>;
using Computed = std::function<Numbers()>;
template <class Adam> Computed first_step(const Numbers& gradients) {
  return [=] {
    Numbers p(gradients.size());
    Adam().step(p, gradients, 1);
    return p;
  };
}

std::string listed(const Numbers& numbers) {
  std::ostringstream text;
  text << std::setprecision(4);
  for (size_t i = 0; i < numbers.size(); ++i)
    text << (i == 0 ? "" : i + 1 < numbers.size() ? ", " : " and ") << numbers[i];
  return text.str();
}

// A bug that a value worked out by hand finds; `what` says of what, for input so small.
Bug with_value(Bug bug, const std::string& what, const Numbers& by_hand, const Computed& wrong, const Computed& right) {
  const auto problem = [=](const Numbers& found) -> std::string {
    double error = 0;
    for (size_t i = 0; i < by_hand.size(); ++i) error = std::max(error, std::fabs(found[i] / by_hand[i] - 1));
    return error < 1e-5 ? "" : "reference value: " + what + " " + listed(found) + "; by hand: " + listed(by_hand);
  };
  bug.check = [=] { return problem(wrong()); };
  bug.check_right = [=] { return problem(right()); };
  return bug;
}

// What a step at rate 1 subtracts from p where two parts have these gradients, and the bound is 1.
Numbers clipped_step(const Tensor& first, const Tensor& second) {
  Tensor p = zeros({2}, f64);
  bugs::bug_29::my_step(p, {first, second}, 1, 1);
  return {-p.at(0), -p.at(1)};
}
Numbers right_clipped_step(const Tensor& first, const Tensor& second) {
  const Variable p = parameter(zeros({2}, f64), "p");
  for (const Tensor& part : {first, second}) backward(p, part);
  optim::SGD({p}).step(1, 1.0);
  return {-p.value().at(0), -p.value().at(1)};
}

// Where p, at first 0, is after one, two and three steps at rate 1, all with the gradient 1.
using Step = std::function<void(std::vector<Variable>&)>;
Numbers after_steps(const Step& step) {
  std::vector<Variable> p{parameter(zeros({1}, f64), "p")};
  Numbers places;
  for (int i = 0; i < 3; ++i) {
    backward(p[0]);
    step(p);
    places.push_back(p[0].item());
  }
  return places;
}

// The gradients for means of 10, of 10^4 and of 10^8 terms.
Numbers half_gradients(bool scaled) {
  const bugs::bug_32::MixedPrecision half;
  Numbers gradients;
  for (const double count : {1e1, 1e4, 1e8})
    gradients.push_back(scaled ? half.unscaled(bugs::bug_32::half(half.scaled(1) / count)) : half.gradient(1, count));
  return gradients;
}

// Queries of 0 give all keys the same score, so that each output is the mean of the values that are seen: 1, 3, 8.
Tensor three_values() { return Tensor::of<double>({3, 1}, {1, 3, 8}); }
Numbers cached_means() {
  bugs::bug_33::MyCache cache;
  Numbers means;
  for (i64 t = 0; t < 3; ++t) {
    const Tensor v = three_values().rows(t, t + 1);
    means.push_back(cache.extend(zeros({1, 1}, f64), v, v).item());
  }
  return means;
}
Numbers right_means() {
  const Variable V = constant(three_values().reshape({1, 1, 3, 1})), Q = constant(zeros({1, 1, 3, 1}, f64));
  const Tensor y = attention(Q, V, V, Mask::causal()).output.value();
  return {y.at(0), y.at(1), y.at(2)};
}

}  // namespace

std::vector<Bug> bugs_of_steps() {
  const Tensor first = Tensor::of<double>({2}, {3, 0}), second = Tensor::of<double>({2}, {0, 4});
  return {
      with_value({.name = "adam-counts-numbers",
                  .mistake = "Adam's t grows with every number instead of every step: all but the first are corrected "
                             "as if they were older.",
                  .hint = "The first number is right. What do all numbers share that changes while they move?"},
                 "the first step of three numbers, at rate 1 with the gradients 1, 4 and -2, goes by", {-1, -1, 1},
                 first_step<bugs::bug_27::MyAdam>({1, 4, -2}), first_step<AdamThatCountsSteps>({1, 4, -2})),
      with_value(
          {.name = "clipping-before-parts-are-joined",
           .mistake = "The gradient of each part is clipped by itself, before they are added: what is clipped "
                      "changes its direction, and the sum may be longer than the bound.",
           .hint = "The gradients (3, 4) and 0 give the right step. Whose norm is compared with the bound?",
           .numbers =
               [=] {
                 return "the gradients (3, 4) and 0 move p by " + listed(clipped_step(first + second, zeros({2}, f64)));
               }},
          "the gradients (3, 0) and (0, 4) of two parts, clipped to the norm 1, move p at rate 1 by", {0.6, 0.8},
          [=] { return clipped_step(first, second); }, [=] { return right_clipped_step(first, second); }),
      with_value(
          {.name = "zero-grad-of-a-copy",
           .mistake = "zero_grad sets a copy of each gradient to 0: backward goes on adding to the old one.",
           .hint = "The first step is right. What does the second backward find in the gradient?"},
          "at rate 1 with the gradient 1, three steps from 0 lead to", {-1, -2, -3},
          [] { return after_steps([](std::vector<Variable>& p) { bugs::bug_31::my_step(p, 1); }); },
          [] { return after_steps([](std::vector<Variable>& p) { optim::SGD({p[0]}).step(1); }); }),
      with_value(
          {.name = "loss-scaler-never-called",
           .mistake = "The loss is never scaled before a backward in half precision: small gradients become 0.",
           .hint = "Large gradients are right. In fp16, what is 10^-8? And who should have prevented it?"},
          "in half precision, the gradients for means of 10, of 10^4 and of 10^8 numbers are", {1e-1, 1e-4, 1e-8},
          [] { return half_gradients(false); }, [] { return half_gradients(true); }),
      with_value({.name = "cache-without-the-current-token",
                  .mistake = "The query looks into the cache before the key and value of its own position are there.",
                  .hint = "Which value is missing in the second mean, and which in the third?"},
                 "with queries of 0, the outputs for the values 1, 3 and 8 are their means so far:", {1, 2, 4},
                 cached_means, right_means),
  };
}

}  // namespace orrery::nn
