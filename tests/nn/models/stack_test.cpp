// Chapter 7. Tests of stacks of layers: options, dropout, weights of their own, harmful padding, and the loss
// from a head. What layers compute is PyTorch's (tests/torch).
#include "nn/models/stack.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"
#include "tests/nn/compare.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

struct Doubled : LinearMap {
  Linear base;
  explicit Doubled(Linear linear) : base(std::move(linear)) {}
  Variable operator()(const Variable& x, RowRange rows) const override { return scale(base(x, rows), 2.0); }
  Doubled clone() const { return Doubled(base.clone()); }
  void visit(Visitor& v) override { v.inlined(base); }
};

}  // namespace

TEST_CASE("the loss of a head is the cross entropy of its logits, whatever the head is") {
  Rng rng(1);
  Linear plain(5, 7, rng);
  to(plain, f64);
  const Variable last = parameter(randn({2, 3, 5}, rng, f64));
  const Tensor labels = Tensor::of<i32>({2, 3}, {1, 6, -100, 0, 3, 3});
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  const double expected = cross_entropy(plain(last), labels, options).value().item(),
               doubled = cross_entropy(scale(plain(last), 2.0), labels, options).value().item();
  CHECK(head_loss(plain, last, labels, options).value().item() == doctest::Approx(expected).epsilon(1e-12));
  CHECK(head_loss(Linear(Doubled(plain.clone())), last, labels, options).value().item() ==
        doctest::Approx(doubled).epsilon(1e-12));
  CHECK(doubled != doctest::Approx(expected).epsilon(1e-3));
}

TEST_CASE("options that are not given follow from those that are") {
  LayerOptions options{.d_model = 8, .num_heads = 2, .dropout = 0.3, .bias = false};
  CHECK(options.attention().dropout == 0.3);
  CHECK(options.feed_forward().dropout == 0.3);
  CHECK(options.feed_forward().activation == Activation::relu);
  CHECK_FALSE(options.linear().bias);
  CHECK_FALSE(options.norm().bias);
  options.attention_dropout = 0.0;
  options.activation_dropout = 0.2;
  options.activation = Activation::gelu;
  CHECK(options.attention().dropout == 0);
  CHECK(options.feed_forward().dropout == 0.2);
  CHECK(options.feed_forward().activation == Activation::gelu);
}

namespace {

nn::LayerOptions encoder_options(bool norm_first, double dropout = 0) {
  return {.d_model = 6, .num_heads = 2, .d_ff = 10, .dropout = dropout, .norm_first = norm_first};
}

const Mask source_padding = Mask::padding(Tensor::of<i32>({2}, {4, 2}));

}  // namespace

TEST_CASE("dropout: two sub-layer outputs, the weights, the inner activations, each a draw of its own") {
  Rng rng(1);
  nn::LayerOptions options = encoder_options(false, 0.3);
  options.attention_dropout = options.activation_dropout = 0.0;
  const Variable x = constant(randn({2, 4, 6}, rng));
  Pass paper = Pass::training(1, 1), all = Pass::training(1, 1);
  nn::EncoderLayer(options, rng)(x, source_padding, paper);
  CHECK(paper.draws == 2);
  options.attention_dropout = options.activation_dropout = 0.3;
  nn::EncoderLayer(options, rng)(x, source_padding, all);
  CHECK(all.draws == 4);
}

TEST_CASE("each layer of an encoder has weights of its own") {
  Rng rng(1);
  nn::Encoder encoder(3, true, encoder_options(false), rng);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < i; ++j) {
      Parameters a = encoder.layers[i].parameters(), b = encoder.layers[j].parameters();
      for (size_t k = 0; k < a.size(); ++k) {
        const bool is_matrix = a[k].value.shape().rank() == 2;
        CHECK(a[k].value.node() != b[k].value.node());
        if (is_matrix) CHECK(distance(a[k].value.value(), b[k].value.value()) > 0.01);
      }
    }
  }
}

TEST_CASE("promise 13: a stack sets harmful padding to 0 once, where it enters, and copies nothing else") {
  struct Copies final : Observer {
    int seen = 0;
    void forward_begins(std::string_view name, std::span<const Variable* const>) override {
      seen += name == "zero_padding";
    }
  };
  Rng rng(1);
  for (const bool norm_first : {false, true}) {
    const nn::Encoder encoder(3, true, encoder_options(norm_first), rng);
    for (const double behind : {1.0, 1e38, double{NAN}}) {
      Tensor x = randn({2, 4, 6}, rng), rest = x.reshape({8, 6}).rows(6, 8);
      fill(rest, behind);
      Copies copies;
      const ObserverScope scope(copies);
      Pass pass;
      encoder(constant(x), source_padding, pass);
      CHECK(copies.seen == (behind == 1 ? 0 : 1));
    }
  }
}

TEST_CASE("promise 13: a memory with NaN in its padding is cleared once for all layers, which add up its gradient") {
  Rng rng(1);
  constexpr i64 d_model = 64, m = 40;  // wide enough that sums in another order have other bits
  nn::Decoder decoder(3, false, {.d_model = d_model, .num_heads = 4, .d_ff = 8, .dropout = 0}, rng);
  const Variable x = constant(randn({4, 30, d_model}, rng));
  const Tensor clean = randn({4, m, d_model}, rng), dy = randn(x.shape(), rng);
  const Mask padding = Mask::padding(std::vector<i32>{m, m, m, m / 2});
  std::vector<Tensor> gradients;
  for (const double behind : {0.0, double{NAN}, 1e38}) {
    Tensor numbers = clean.clone(), rest = numbers.reshape({4 * m, d_model}).rows(4 * m - m / 2, 4 * m);
    fill(rest, behind);
    const Variable memory = parameter(numbers);
    Pass pass;
    backward(decoder(x, memory, Mask::causal(), padding, pass), dy);
    gradients.push_back(memory.gradient());
    CHECK(same_bits(gradients.back(), gradients.front()));
  }
}
