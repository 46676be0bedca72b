// Chapter 7. Promise 12: whichever operation of a training step gives the first NaN, it is the one that is named.
#include "autograd/check/first_nan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <set>

#include "autograd/check/samples.h"
#include "autograd/observer.h"
#include "autograd/ops.h"
#include "nn/models/transformer.h"

using namespace orrery;

namespace {

nn::Transformer small_model(bool norm_first) {
  Rng rng(1);
  return nn::Transformer({.src_vocab_size = 7,
                          .tgt_vocab_size = 7,
                          .layer = {.d_model = 6, .num_heads = 2, .d_ff = 9, .dropout = 0.1, .norm_first = norm_first},
                          .num_encoder_layers = 2,
                          .num_decoder_layers = 2,
                          .final_norm = norm_first,
                          .max_len = 6,
                          .share_embeddings = true},
                         rng);
}

Variable loss_of(const nn::Transformer& model) {
  const Tensor source = Tensor::of<i32>({2, 4}, {3, 1, 5, 2, 4, 3, 0, 0});
  const Tensor target = Tensor::of<i32>({2, 4}, {1, 4, 5, 2, 1, 3, 2, 0});
  nn::Pass pass = nn::Pass::training(5, 1);
  return cross_entropy(model(source, slice(target, 1, 0, -1), pass), slice(target, 1, 1),
                       {.ignore_index = 0, .label_smoothing = 0.1});
}

// Writes `value` into one output of operation number `target`, and learns what the operations are called.
struct Poison : Observer {
  i64 target = -1, forward = 0, backward = 0;
  bool in_backward = false;
  double value = 0;
  std::string name;

  void forward_ended(std::string_view operation, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override {
    if (forward++ != target || in_backward) return;
    if (outputs[0].count() == 0) return;
    if (outputs[0].shares_memory_with(inputs[0]->value())) return;  // a view makes no numbers
    Tensor y = outputs[0];
    put(y);
    name = operation;
  }
  bool changes_contributions() const override { return in_backward; }
  void contribution(const Node& node, size_t, Tensor& g) override {
    if (backward != target || !in_backward || !name.empty() || g.count() == 0) return;
    put(g);
    name = node.name;
  }
  void backward_ended(const Node&) override { ++backward; }

 private:
  void put(Tensor& x) const {
    if (x.dtype() == f64)
      x.write<double>()[x.count() / 2] = value;
    else
      x.write<float>()[x.count() / 2] = static_cast<float>(value);
  }
};

/// Poisons each operation of a loss in turn, forward or backward, and names those that were poisoned.
std::vector<std::string> check_each(const std::function<Variable()>& loss, bool in_backward,
                                    double value = std::nan("")) {
  Poison count;
  {
    const ObserverScope scope(count);
    backward(loss());
  }
  std::vector<std::string> poisoned;
  for (i64 target = 0; target < (in_backward ? count.backward : count.forward); ++target) {
    Poison poison;
    poison.target = target;
    poison.in_backward = in_backward;
    poison.value = value;
    const ObserverScope scope(poison);
    const FirstNonFinite first = find_first_non_finite(loss);
    if (poison.name.empty()) continue;
    CAPTURE(poison.name);
    CHECK(first.found);
    CHECK(first.in_backward == in_backward);
    CHECK(first.index == target);
    CHECK(first.operation == poison.name);
    poisoned.push_back(poison.name);
  }
  return poisoned;
}

}  // namespace

TEST_CASE("promise 12: of a whole training step, every operation that gives NaN or infinity is named") {
  for (const bool norm_first : {false, true}) {
    const nn::Transformer model = small_model(norm_first);
    for (const bool in_backward : {false, true})
      for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()})
        CHECK(check_each([&] { return loss_of(model); }, in_backward, value).size() > 40);
  }
}

TEST_CASE("promise 12: every operation there is, in every sample of it, is named when it gives NaN") {
  std::set<std::string> forward, backward;
  for (const Sample& sample : operation_samples()) {
    CAPTURE(sample.name);
    CAPTURE(sample.variant);
    const Checkable f = sample.build(f64);
    const auto loss = [&] { return sum(f.output()); };
    for (const std::string& name : check_each(loss, false)) forward.insert(name);
    for (const std::string& name : check_each(loss, true)) backward.insert(name);
    for (NamedParameter leaf : f.leaves) leaf.value.clear_gradient();
  }
  // A view makes no numbers, and these others are made of several operations.
  const std::set<std::string> no_numbers{"reshape",  "split",      "split3",          "attention",
                                         "variance", "normalize",  "log_sum_exp",     "select",
                                         "mse",      "index_rows", "bce_with_logits", "kl_divergence"};
  for (const Sample& sample : operation_samples()) {
    if (no_numbers.contains(sample.name)) continue;
    CAPTURE(sample.name);
    CHECK(forward.contains(sample.name));
    CHECK(backward.contains(sample.name));
  }
}

TEST_CASE("promise 12: a NaN in any one parameter is traced to that parameter") {
  nn::Transformer model = small_model(false);
  for (NamedParameter& p : model.parameters()) {
    const Tensor before = p.value.value().clone();
    p.value.mutable_value().write<float>()[before.count() - 1 - before.count() / 2] = NAN;
    const std::string text = explain_non_finite([&] { return loss_of(model); });
    CAPTURE(text);
    CHECK(text.find("from parameter " + p.name) != std::string::npos);
    CHECK(text.find("read a parameter that is not finite, and gave NaN") != std::string::npos);
    std::copy_n(before.data<float>(), before.count(), p.value.mutable_value().write<float>());
  }
}
