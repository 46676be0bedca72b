// Chapter 7. Parts that a user puts into a layer: fused and composed forms agree, names, files, copies, generation.
#include "nn/part.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "autograd/ops.h"
#include "nn/files/files.h"
#include "nn/generate/decoder_state.h"
#include "nn/models/gpt.h"
#include "nn/models/transformer.h"
#include "tests/nn/compare.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

// x W^T + b, but not the library's own.
struct SameMap : LinearMap {
  Linear base;
  explicit SameMap(Linear linear) : base(std::move(linear)) {}
  Variable operator()(const Variable& x, RowRange rows) const override { return base(x, rows); }
  SameMap clone() const { return SameMap(base.clone()); }
  void visit(Visitor& v) override { v.inlined(base); }
};

struct Doubled : SameMap {
  Variable extra = parameter(full({1}, 2.0));
  explicit Doubled(Linear linear) : SameMap(std::move(linear)) {}
  Variable operator()(const Variable& x, RowRange rows) const override { return base(x, rows) * extra; }
  Doubled clone() const {
    Doubled copy(base.clone());
    copy.extra = parameter(extra.value().clone());
    return copy;
  }
  void visit(Visitor& v) override {
    v.inlined(base);
    v("extra", extra);
  }
};

struct MeanAttention : Attention {
  Variable self_attention(const Variable& x, const Mask&, Pass&) const override { return mean(x, {1}, true) + x * 0.0; }
  void visit(Visitor&) override {}
};

// Turns columns c and c + d_k / 2 of Q and K by 0.3 times their position.
struct Turned : QueryKeyMap {
  Variable queries(const Variable& x, i64 first_position) const override {
    const i64 n = x.size(1), half = x.size(3) / 2;
    Tensor cosine = zeros({n, 1, 1}, f64), sine = zeros({n, 1, 1}, f64);
    for (i64 i = 0; i < n; ++i) {
      cosine.write<double>()[i] = std::cos(0.3 * static_cast<double>(first_position + i));
      sine.write<double>()[i] = std::sin(0.3 * static_cast<double>(first_position + i));
    }
    const Variable c = constant(cosine.to(x.dtype())), s = constant(sine.to(x.dtype()));
    const auto [a, b] = split(x, half, -1);
    return concat({a * c - b * s, a * s + b * c}, -1);
  }
  Turned clone() const { return {}; }
  void visit(Visitor&) override {}
};

// The same for each query: a key counts the less, the later it comes. Any shape that fits the scores will do.
struct Fading : ScoreBias {
  Shape leading;
  explicit Fading(const Shape& leading) : leading(leading) {}
  Variable operator()(i64, i64 m, Dtype dtype) const override {
    return constant((arange(m).to(f64) * -0.25).reshape(leading.plus(1).plus(m)).to(dtype));
  }
  void visit(Visitor&) override {}
};

// -|distance| / 4, laid out by distance or for each pair.
struct Falling : ScoreBias {
  bool dense;
  explicit Falling(bool dense) : dense(dense) {}
  Variable operator()(i64 n, i64 m, Dtype dtype) const override {
    Tensor bias = zeros({3, n + m - 1}, f64);
    for (i64 i = 0; i < bias.count(); ++i)
      bias.write<double>()[i] = -0.25 * static_cast<double>(std::abs(i % (n + m - 1) - m + 1));
    const Variable by_distance_of = constant(bias.to(dtype));
    return dense ? reshape(by_distance(by_distance_of, n, m), {1, 3, n, m}) : by_distance_of;
  }
  Falling clone() const { return Falling(dense); }
  void visit(Visitor&) override {}
};

GptConfig gpt_of_parts() {
  return {.vocab_size = 11, .layer = {.d_model = 12, .num_heads = 3, .d_ff = 20, .dropout = 0.2}, .max_len = 9};
}

template <class Map, class Each> void replace_all(Gpt& model, const Each& each) {
  for (EncoderLayer& layer : model.layers) {
    auto& attention = layer.self_attn.as<MultiHeadAttention>();
    for (Linear* linear :
         {&attention.in_proj, &attention.out_proj, &layer.feed_forward.linear1, &layer.feed_forward.linear2}) {
      *linear = Map(std::move(*linear));
      each(*linear);
    }
  }
}

const Tensor tokens = Tensor::of<i32>({2, 5}, {3, 1, 5, 2, 4, 3, 3, 0, 9, 7});

// The loss, and the gradient of every parameter.
std::vector<Tensor> loss_and_gradients(Gpt& model) {
  Pass pass = Pass::training(3, 1);
  const Variable loss = model.loss(tokens, tokens, pass);
  backward(loss);
  std::vector<Tensor> all{loss.value()};
  for (NamedParameter& p : model.parameters()) {
    all.push_back(p.value.gradient());
    p.value.clear_gradient();
  }
  return all;
}

}  // namespace

TEST_CASE("with a map that does the same, the composed form is taken, and gives what the fused one gives") {
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh}) {
    GptConfig config = gpt_of_parts();
    config.num_layers = 2;
    config.layer.activation = activation;
    config.layer.activation_dropout = 0.3;
    Rng rng(1);
    Gpt model(config, rng);
    make_noisy(model, 2);
    const std::vector<Tensor> expected = loss_and_gradients(model);
    const std::vector<std::string> names = names_of(model.parameters());
    replace_all<SameMap>(model, [](const Linear& linear) { CHECK_FALSE(linear.is_plain()); });
    const std::vector<Tensor> got = loss_and_gradients(model);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(relative(got[i], expected[i]) < 1e-11);
    CHECK(names_of(model.parameters()) == names);
  }
}

TEST_CASE("cross-attention asks a replaced map only for the rows it needs; the generator can be replaced too") {
  Rng rng(1);
  Transformer model({.src_vocab_size = 7,
                     .tgt_vocab_size = 6,
                     .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0},
                     .num_encoder_layers = 1,
                     .num_decoder_layers = 1,
                     .max_len = 5},
                    rng);
  make_noisy(model, 2);
  const Tensor source = Tensor::of<i32>({1, 4}, {3, 1, 5, 0}), target = Tensor::of<i32>({1, 3}, {1, 4, 5});
  Pass pass = Pass::inference();
  const double expected = model.loss(source, target, target, pass).item();
  Linear& in_proj = model.decoder.layers[0].multihead_attn.as<MultiHeadAttention>().in_proj;
  in_proj = SameMap(std::move(in_proj));
  model.generator = SameMap(std::move(model.generator));
  CHECK(model.loss(source, target, target, pass).item() == doctest::Approx(expected).epsilon(1e-12));
  Transformer copy = model.clone();
  CHECK(copy.loss(source, target, target, pass).item() == doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("parameters of a replaced map are named after its place, and files still store its weight as [in, out]") {
  GptConfig config = gpt_of_parts();
  config.num_layers = 1;
  Rng rng(1);
  Gpt model(config, rng);
  replace_all<Doubled>(model, [](const Linear&) {});
  std::set<std::string> names;
  for (const NamedParameter& p : model.parameters()) names.insert(p.name);
  for (const char* name : {"self_attn.in_proj.weight", "self_attn.in_proj.extra", "self_attn.out_proj.extra",
                           "linear1.bias", "linear1.extra", "linear2.extra"})
    CHECK(names.contains(std::string("layers.0.") + name));
  const TensorMap stored = tensors_on_disk(model);
  CHECK(stored.at("h.0.attn.c_attn.weight").shape() == Shape{12, 36});
  CHECK(stored.at("h.0.mlp.c_fc.weight").shape() == Shape{12, 20});
  CHECK(stored.at("h.0.mlp.c_proj.weight").shape() == Shape{20, 12});
  CHECK(same_bits(stored.at("h.0.attn.c_proj.extra"), full({1}, 2.0)));
  EncoderLayer layer({.d_model = 4, .num_heads = 2, .d_ff = 6}, rng);
  Linear& in_proj = layer.self_attn.as<MultiHeadAttention>().in_proj;
  in_proj = Doubled(std::move(in_proj));
  CHECK(layer.parameters()[0].name == "self_attn.in_proj.weight");
  CHECK(layer.parameters()[2].name == "self_attn.in_proj.extra");
}

TEST_CASE("a clone has parts of its own, with the same values") {
  GptConfig config = gpt_of_parts();
  config.num_layers = 1;
  Rng rng(1);
  Gpt model(config, rng);
  replace_all<Doubled>(model, [](const Linear&) {});
  auto& attention = model.layers[0].self_attn.as<MultiHeadAttention>();
  attention.query_key_map = Turned();
  attention.score_bias = Falling(false);
  attention.own_mask = Mask::window(3);
  make_noisy(model, 4);
  Pass pass = Pass::inference();
  const Tensor expected = model(tokens, pass).value();
  Gpt copy = model.clone();
  CHECK(same_bits(copy(tokens, pass).value(), expected));
  CHECK(copy.layers[0].self_attn.as<MultiHeadAttention>().in_proj.map.as<Doubled>().extra.name() ==
        model.layers[0].self_attn.as<MultiHeadAttention>().in_proj.map.as<Doubled>().extra.name());
  Parameters ours = model.parameters(), theirs = copy.parameters();
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].name == theirs[i].name);
    CHECK_FALSE(ours[i].value.value().shares_memory_with(theirs[i].value.value()));
  }
  for (NamedParameter& p : model.parameters()) fill(p.value.mutable_value(), 0);
  CHECK(same_bits(copy(tokens, pass).value(), expected));
  model.layers[0].self_attn = MeanAttention();
  CHECK_THROWS_WITH_AS(model.clone(), "clone: MeanAttention has no clone()", Error);
}

TEST_CASE("a clone has the ties of its original, whatever was replaced in it") {
  Rng rng(1);
  const TransformerConfig config{.src_vocab_size = 9,
                                 .tgt_vocab_size = 9,
                                 .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12},
                                 .num_encoder_layers = 1,
                                 .num_decoder_layers = 1,
                                 .share_embeddings = true};
  const Tensor ids = Tensor::of<i32>({2, 3}, {3, 1, 5, 8, 0, 7});
  const auto check_clone = [&](Transformer& model, size_t parameters) {
    Transformer copy = model.clone();
    REQUIRE(model.parameters().size() == parameters);
    CHECK(names_of(copy.parameters()) == names_of(model.parameters()));
    Pass pass = Pass::inference();
    CHECK(same_bits(copy(ids, ids, pass).value(), model(ids, ids, pass).value()));
    CHECK(copy.src_embed.weight.node() != model.src_embed.weight.node());
  };
  Transformer plain(config, rng);
  const size_t tied = plain.parameters().size();
  check_clone(plain, tied);
  Transformer with_map(config, rng);
  with_map.generator = Doubled(std::move(with_map.generator));
  check_clone(with_map, tied + 1);
  Transformer untied(config, rng);
  untied.generator = Linear(8, 9, rng);
  check_clone(untied, tied + 1);
  untied.generator = Linear(8, 12, rng);  // for other tokens than the configuration has
  check_clone(untied, tied + 1);
}

TEST_CASE("an attention of one's own stands in a layer; what it does not have is an error that says so") {
  Rng rng(1);
  Gpt model(gpt_of_parts(), rng);
  for (EncoderLayer& layer : model.layers) layer.self_attn = MeanAttention();
  Pass pass = Pass::inference();
  CHECK(all_finite(model(tokens, pass).value()));
  CHECK(model.layers[0].self_attn.get_if<MultiHeadAttention>() == nullptr);
  CHECK_THROWS_WITH_AS(model.layers[0].self_attn.as<MultiHeadAttention>(),
                       "part: holds MeanAttention, not MultiHeadAttention", Error);
  const NoGradient nothing_recorded;
  CHECK_THROWS_WITH_AS(decoder_state(model, 2, 5), "attention: MeanAttention does not generate: it has no state",
                       Error);
  const Part<Attention> part = MeanAttention();
  const Variable x = constant(zeros({1, 2, 3}));
  CHECK_THROWS_WITH_AS(part(x, x, Mask(), pass), "attention: MeanAttention has no cross-attention", Error);
}

TEST_CASE("positions, biases and windows: token by token through the cache as all at once") {
  for (const bool dense : {false, true}) {
    for (const Dtype dtype : {f64, f32}) {
      GptConfig config = gpt_of_parts();
      config.num_layers = 2;
      Rng rng(1);
      Gpt model(config, rng);
      make_noisy(model, 5);
      to(model, dtype);
      auto& first = model.layers[0].self_attn.as<MultiHeadAttention>();
      auto& second = model.layers[1].self_attn.as<MultiHeadAttention>();
      first.query_key_map = Turned();
      first.own_mask = Mask::window(3, 0);
      second.score_bias = Falling(dense);
      second.own_mask = Mask::window(1) | Mask::global(2);
      const NoGradient nothing_recorded;
      Pass pass = Pass::inference();
      const Tensor ids = randint(0, 11, {2, 9}, rng), whole = model(ids, pass).value();
      for (const std::vector<i64>& pieces : {std::vector<i64>{9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 3, 2}, {1, 7, 1}}) {
        DecoderState state = decoder_state(model, 2, 9);
        std::vector<Tensor> parts;
        i64 begin = 0;
        for (const i64 n : pieces) {
          const Tensor next = slice(ids, 1, begin, begin + n);
          parts.push_back(model.head(next_positions(model, next, state)).value());
          begin += n;
        }
        CHECK(relative(concat(parts, 1), whole) < bound(dtype));
      }
    }
  }
}

TEST_CASE("a bias of any shape that fits the scores can also generate") {
  const NoGradient nothing_recorded;
  for (const Shape& leading : {Shape{1}, Shape{1, 1}}) {
    GptConfig config = gpt_of_parts();
    config.num_layers = 1;
    Rng rng(1);
    Gpt model(config, rng);
    make_noisy(model, 5);
    model.layers[0].self_attn.as<MultiHeadAttention>().score_bias = Fading(leading);
    Pass pass = Pass::inference();
    const Tensor ids = randint(0, 11, {2, 5}, rng), whole = model(ids, pass).value();
    DecoderState state = decoder_state(model, 2, 9);
    std::vector<Tensor> parts;
    for (i64 t = 0; t < 5; ++t)
      parts.push_back(model.head(next_positions(model, slice(ids, 1, t, t + 1), state)).value());
    CHECK(relative(concat(parts, 1), whole) < bound(f64));
  }
}

TEST_CASE("self-attention's weights show positions, bias and window, and equal the fused form's output") {
  Rng rng(1);
  MultiHeadAttention layer(12, 3, rng);
  make_noisy(layer, 3);
  layer.query_key_map = Turned();
  layer.score_bias = Falling(false);
  layer.own_mask = Mask::window(1);
  const Variable x = constant(randn({2, 6, 12}, rng, f64));
  Pass pass = Pass::inference(), asked = pass;
  AttentionRecorder seen;
  asked.recorder = &seen;
  const Tensor shown = layer(x, Mask(), asked).value(), weights = seen.of(layer);
  CHECK(distance(layer(x, Mask(), pass).value(), shown) < 1e-12);
  for (i64 row = 0; row < 2 * 3 * 6; ++row) {
    for (i64 j = 0; j < 6; ++j) CHECK((weights.at(row * 6 + j) > 0) == (std::abs(row % 6 - j) <= 1));
  }
}

TEST_CASE("positions, a bias and an own mask are refused in cross-attention") {
  Rng rng(1);
  const Variable x = constant(zeros({1, 2, 12}));
  Pass pass = Pass::inference();
  const auto refused = [&](const MultiHeadAttention& layer) {
    CHECK_THROWS_WITH_AS(layer(x, x, Mask(), pass), doctest::Contains("this is cross-attention"), Error);
  };
  MultiHeadAttention turned(12, 3, rng), biased(12, 3, rng), ruled(12, 3, rng);
  turned.query_key_map = Turned();
  biased.score_bias = Falling(false);
  ruled.own_mask = Mask::window(2);
  refused(turned);
  refused(biased);
  refused(ruled);
}

TEST_CASE(
    "a copy is frozen where the original is: plain layers, parts, and parts that copy their parameters themselves") {
  Rng rng(1);
  Linear plain(2, 3, rng);
  plain.bias.set_frozen(true);
  const Linear copy = plain.clone();
  CHECK(copy.bias.is_frozen());
  CHECK_FALSE(copy.weight.is_frozen());
  Linear doubled = Doubled(Linear(2, 3, rng));
  freeze(doubled);
  Linear copied = doubled.clone();
  for (const NamedParameter& p : copied.parameters()) CHECK(p.value.is_frozen());
  Gpt model({.vocab_size = 7, .layer = {.d_model = 8, .num_heads = 2, .d_ff = 8}, .num_layers = 2, .max_len = 4}, rng);
  model.layers[1].feed_forward.linear1 = Doubled(std::move(model.layers[1].feed_forward.linear1));
  freeze(model);
  unfreeze(model.layers[1]);
  Gpt other = model.clone();
  const Parameters originals = model.parameters(), copies = other.parameters();
  REQUIRE(copies.size() == originals.size());
  for (size_t i = 0; i < copies.size(); ++i) {
    CAPTURE(copies[i].name);
    CHECK(copies[i].value.is_frozen() == !copies[i].name.starts_with("layers.1."));
    CHECK(copies[i].value.is_frozen() == originals[i].value.is_frozen());
    CHECK(copies[i].value.node() != originals[i].value.node());
  }
}

TEST_CASE("with all frozen but the last part of a GPT, that part gets the gradients it always got, and the rest none") {
  Rng rng(1);
  Gpt model({.vocab_size = 7,
             .layer = {.d_model = 8, .num_heads = 2, .d_ff = 8},
             .num_layers = 2,
             .max_len = 4,
             .tied = false},
            rng);
  const Tensor ids = randint(0, 7, {2, 4}, rng);
  const auto gradients = [&] {
    Pass pass;
    backward(model.loss(ids, ids, pass));
    std::vector<Tensor> result;
    for (NamedParameter& p : model.parameters()) {
      result.push_back(p.value.gradient());
      p.value.clear_gradient();
    }
    return result;
  };
  const std::vector<Tensor> all = gradients();
  freeze(model);
  unfreeze(model.layers[1].feed_forward);
  unfreeze(model.lm_head);
  const std::vector<Tensor> some = gradients();
  const Parameters parameters = model.parameters();
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(parameters[i].name);
    REQUIRE(all[i].defined());
    CHECK(some[i].defined() == !parameters[i].value.is_frozen());
    if (some[i].defined()) CHECK(same_bits(some[i], all[i]));
  }
}
