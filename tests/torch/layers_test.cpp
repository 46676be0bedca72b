// Chapter 5. Equal to PyTorch: functions, layers, multi-head attention with every kind of mask, the whole
// torch.nn.Transformer, ten steps of training it.
#include "autograd/ops.h"
#include "core/mask.h"
#include "nn/attention/attention.h"
#include "nn/layers/embedding.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/linear.h"
#include "nn/layers/rms_norm.h"
#include "nn/models/stack.h"
#include "nn/models/transformer.h"
#include "optim/optim.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

TEST_CASE("promise 9: gelu is torch.nn.functional.gelu, exact and by tanh") {
  check_equal(Case("activation", "gelu"), [](const Inputs& in) { return gelu(in["input"]); });
  check_equal(Case("activation", "gelu_tanh"), [](const Inputs& in) { return gelu_tanh(in["input"]); });
}

TEST_CASE("promise 9: softmax is torch.nn.functional.softmax, and its logarithm") {
  check_equal(Case("softmax", "softmax"), [](const Inputs& in) { return softmax(in["input"]); });
  check_equal(Case("softmax", "log_softmax"), [](const Inputs& in) { return log_softmax(in["input"]); });
}

TEST_CASE("promise 9: at ties and kinks, with eps, correction and reductions, functions are PyTorch's") {
  using V = const Variable&;
  const auto check_function = [](const std::string& name, auto f) {
    INFO(name);
    check_equal(Case("functions", name), [&](const Inputs& in) { return f(in["input"]); });
  };
  check_function("max", [](V x) { return max(x, {1}); });
  check_function("min", [](V x) { return min(x, {1}); });
  check_function("abs", [](V x) { return abs(x); });
  check_function("elu", [](V x) { return elu(x, 0.75); });
  check_function("clamp", [](V x) { return clamp(x, -0.5, 1); });
  check_function("softplus", [](V x) { return softplus(x); });
  check_function("variance", [](V x) { return variance(x, {0, 2}); });
  check_function("variance of all", [](V x) { return variance(x, {}, false, 0); });
  check_function("normalize", [](V x) { return normalize(x, 1e-5); });
  check_function("log_sum_exp", [](V x) { return log_sum_exp(x, {0, 2}); });
  check_function("mse", [](V x) { return mse(x, x.value() * 0.5 + 0.25); });
  check_function("mse sum", [](V x) { return mse(x, x.value() * 0.5 + 0.25, {.reduction = Reduction::sum}); });
  check_function("bce", [](V x) { return bce_with_logits(x, (x.value() > 0.5).to(x.dtype())); });
  check_function("kl", [](V x) { return kl_divergence(log_softmax(x), softmax(constant(-x.value())).value()); });
  check_function("kl zeros",
                 [](V x) { return kl_divergence(x, (x.value() > 0).to(x.dtype()), {.reduction = Reduction::sum}); });
}

TEST_CASE("promise 9: what chooses, repeats and orders elements is PyTorch's, and matmul of vectors and leading axes") {
  using V = const Variable&;
  const auto check_one = [](const std::string& name, auto f) {
    INFO(name);
    check_equal(Case("functions", name), [&](const Inputs& in) { return f(in["input"]); });
  };
  const auto check_with = [](const std::string& name, auto f) {
    INFO(name);
    check_equal(Case("functions", name), [&](const Inputs& in) { return f(in["input"], in.ids("ids")); });
  };
  const auto check_two = [](const std::string& name, auto f) {
    INFO(name);
    check_equal(Case("functions", name), [&](const Inputs& in) {
      return f(in["input"], in["other"], in.integers.empty() ? Tensor() : in.ids("ids"));
    });
  };
  const auto rest = [](const Tensor& ids, i32 n) {  // ids % n
    Tensor result = ids.clone();
    for (i32& id : std::span(result.write<i32>(), static_cast<size_t>(result.count()))) id %= n;
    return result;
  };
  check_one("broadcast_to", [](V x) { return broadcast_to(x, {3, 2, 4}); });
  check_one("select", [](V x) { return select(x, 1, -2); });
  check_one("cumulative_sum", [](V x) { return cumulative_sum(x, 1); });
  check_one("sin", [](V x) { return sin(x); });
  check_one("cos", [](V x) { return cos(x); });
  check_one("argsort", [](V x) { return gather(x, 1, argsort(x.value())); });
  check_one("topk", [](V x) { return gather(x, 1, topk(x.value(), 2).ids); });
  check_with("one_hot", [](V x, const Tensor& ids) { return constant(one_hot(ids, 5, x.dtype())) * x; });
  check_with("index_rows", [](V x, const Tensor& ids) { return index_rows(x, ids); });
  check_with("gather", [&](V x, const Tensor& ids) { return gather(x, 1, rest(ids, 3)); });
  check_two("where", [](V x, V y, const Tensor& ids) { return where(ids > 1, x, y); });
  check_two("scatter", [](V x, V y, const Tensor& ids) { return scatter(x, 1, ids, y); });
  check_two("scatter_add", [&](V x, V y, const Tensor& ids) { return scatter(x, 1, rest(ids, 2), y, true); });
  for (const std::string name : {"matmul of leading axes", "matmul with a vector", "matmul of a vector"})
    check_two(name, [](V x, V y, const Tensor&) { return matmul(x, y); });
}

TEST_CASE("promise 9: cross entropy is torch.nn.functional.cross_entropy") {
  const auto check_loss = [](const std::string& name, const CrossEntropyOptions& options) {
    INFO(name);
    check_equal(Case("cross_entropy", name),
                [&](const Inputs& in) { return cross_entropy(in["logits"], in.ids("targets"), options); });
  };
  check_loss("plain", {});
  check_loss("ignore_index", {.ignore_index = 0});
  check_loss("label_smoothing", {.label_smoothing = 0.1});
  check_loss("both", {.ignore_index = 0, .label_smoothing = 0.1});
  check_loss("sum", {.ignore_index = 0, .label_smoothing = 0.1, .reduction = Reduction::sum});
}

TEST_CASE("promise 9: Linear is torch.nn.Linear") {
  for (const bool bias : {true, false}) {
    Rng rng(1);
    nn::Linear layer(5, 4, rng, {.bias = bias});
    check_equal(Case("linear", bias ? "with_bias" : "without_bias"), layer,
                [&](const Inputs& in) { return layer(in["input"]); });
  }
}

TEST_CASE("promise 9: LayerNorm is torch.nn.LayerNorm") {
  nn::LayerNorm with_bias(8), without_bias(8, {.eps = 1e-3, .bias = false});
  check_equal(Case("layer_norm", "with_bias"), with_bias, [&](const Inputs& in) { return with_bias(in["input"]); });
  check_equal(Case("layer_norm", "without_bias"), without_bias,
              [&](const Inputs& in) { return without_bias(in["input"]); });
}

TEST_CASE("promise 9: RmsNorm is torch.nn.RMSNorm") {
  nn::RmsNorm layer(8);
  check_equal(Case("rms_norm", "rms_norm"), layer, [&](const Inputs& in) { return layer(in["input"]); });
}

TEST_CASE("promise 9: Embedding is torch.nn.Embedding, with repeated tokens and unused ones") {
  Rng rng(1);
  nn::Embedding layer(7, 6, rng);
  check_equal(Case("embedding", "embedding"), layer, [&](const Inputs& in) { return layer(in.ids("ids")); });
}

namespace {

// `mask_of` makes the mask from the case's inputs.
template <class MaskOf> void check_attention(const std::string& name, const MaskOf& mask_of, bool bias = true) {
  INFO(name);
  const Case c("attention", name);
  Rng rng(1);
  nn::MultiHeadAttention layer(12, 3, rng, {.bias = bias});
  const bool cross = name.starts_with("cross");
  nn::AttentionRecorder seen;
  check_equal(c, layer, [&](const Inputs& in) {
    nn::Pass pass = nn::Pass::training(1, 1);
    pass.recorder = &seen;
    const Mask mask = mask_of(in);
    const Variable y = cross ? layer(in["x"], in["memory"], mask, pass) : layer(in["x"], mask, pass);
    if (y.dtype() == f64) CHECK(difference(seen.of(layer), c.at("weights")) == "");
    return y;
  });
}

const auto everything = [](const Inputs&) { return Mask(); };
const auto causal = [](const Inputs&) { return Mask::causal(); };
const auto padding = [](const Inputs& in) { return Mask::padding(in.ids("lengths")); };

}  // namespace

TEST_CASE("promise 9: self-attention is torch.nn.MultiheadAttention") {
  check_attention("self", everything);
  check_attention("self_without_bias", everything, false);
}

TEST_CASE("promise 9: masked self-attention is torch.nn.MultiheadAttention with a mask") {
  check_attention("self_causal", causal);
  check_attention("self_padding", padding);
  check_attention("self_causal_padding", [](const Inputs& in) { return causal(in) & padding(in); });
  check_attention("self_table", [](const Inputs& in) { return Mask::allow(in.ids("table")); });
}

TEST_CASE("promise 9: cross-attention is torch.nn.MultiheadAttention over a memory") {
  check_attention("cross", everything);
  check_attention("cross_padding", padding);
}

namespace {

constexpr i64 layers = 2;

nn::LayerOptions options_of(const std::string& form) {
  return {.d_model = 8,
          .num_heads = 2,
          .d_ff = 16,
          .dropout = 0,
          .norm_first = form == "pre_norm",
          .activation = form == "gelu" ? nn::Activation::gelu : nn::Activation::relu};
}

}  // namespace

TEST_CASE("promise 9: EncoderLayer is torch.nn.TransformerEncoderLayer") {
  for (const std::string form : {"post_norm", "pre_norm", "gelu"}) {
    INFO(form);
    Rng rng(1);
    nn::EncoderLayer layer(options_of(form), rng);
    check_equal(Case("encoder_layer", form), layer, [&](const Inputs& in) {
      nn::Pass pass = nn::Pass::training(1, 1);
      return layer(in["x"], Mask::padding(in.ids("lengths")), pass);
    });
  }
}

TEST_CASE("promise 9: DecoderLayer is torch.nn.TransformerDecoderLayer") {
  for (const std::string form : {"post_norm", "pre_norm", "gelu"}) {
    INFO(form);
    Rng rng(1);
    nn::DecoderLayer layer(options_of(form), rng);
    check_equal(Case("decoder_layer", form), layer, [&](const Inputs& in) {
      nn::Pass pass = nn::Pass::training(1, 1);
      return layer(in["x"], in["memory"], Mask::causal() & Mask::padding(in.ids("lengths")),
                   Mask::padding(in.ids("memory_lengths")), pass);
    });
  }
}

TEST_CASE("promise 9: Encoder and Decoder are torch.nn.Transformer") {
  for (const std::string form : {"post_norm", "pre_norm"}) {
    INFO(form);
    Rng rng(1);
    nn::Encoder encoder(layers, true, options_of(form), rng);
    nn::Decoder decoder(layers, true, options_of(form), rng);
    nn::Stacks stacks(encoder, decoder);
    check_equal(Case("transformer", form), stacks, [&](const Inputs& in) {
      nn::Pass pass = nn::Pass::training(1, 1);
      return stacks(in["source"], in["target"], Mask::padding(in.ids("source_lengths")),
                    Mask::causal() & Mask::padding(in.ids("target_lengths")), pass);
    });
  }
}

TEST_CASE("promise 9: ten steps of training have the losses of torch.nn.Transformer between embeddings and generator") {
  constexpr i64 words = 11, warmup = 20;
  for (const std::string form : {"post_norm", "pre_norm"}) {
    INFO(form);
    const Case c("training", form);
    Rng rng(1);
    nn::Transformer model(
        {.src_vocab_size = words,
         .tgt_vocab_size = words,
         .layer = {.d_model = 8, .num_heads = 2, .d_ff = 16, .dropout = 0, .norm_first = form == "pre_norm"},
         .num_encoder_layers = layers,
         .num_decoder_layers = layers,
         .final_norm = true,
         .pad_id = 0},
        rng);
    nn::to(model, f64);
    set_parameters(model, c.role("parameter"));
    optim::Adam adam(model.parameters(), {.beta2 = 0.98, .eps = 1e-9});
    const auto [steps, B, S] = dims<3>(c.at("source"), "source");
    REQUIRE(steps == 10);
    Tensor losses = zeros({steps}, f64);
    for (i64 step = 1; step <= steps; ++step) {
      const Tensor source = c.at("source").rows(step - 1, step).reshape({B, S});
      const Tensor target = c.at("target").rows(step - 1, step).reshape({B, S + 1});
      nn::Pass pass = nn::Pass::training(1, step);
      const Variable logits = model(source, slice(target, 1, 0, -1), pass);
      const Variable loss = cross_entropy(logits, slice(target, 1, 1), {.ignore_index = 0, .label_smoothing = 0.1});
      losses.write<double>()[step - 1] = loss.item();
      backward(loss);
      optim::clip_grad_norm(adam.parameters(), 1.0);
      adam.step(optim::noam(step, 8, warmup));
    }
    CHECK(difference(losses, c.at("losses")) == "");
    CHECK(losses.at(steps - 1) < losses.at(0));
  }
}
