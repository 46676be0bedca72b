// Chapter 7. The Transformer: composition, masks, ties, copies, micro-batches, errors.
#include "nn/models/transformer.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/nn/compare.h"
#include "tests/nn/models/translator_checks.h"

using namespace orrery;
using nn::Pass;
using nn::Transformer;

namespace {

nn::TransformerConfig small_config() {
  return {.src_vocab_size = 9,
          .tgt_vocab_size = 9,
          .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0},
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .max_len = 12};
}

Transformer build(const nn::TransformerConfig& config) { return nn::built<Transformer>(config); }

const Tensor source = Tensor::of<i32>({2, 4}, {3, 4, 5, 6, 7, 8, 0, 0});
const Tensor target = Tensor::of<i32>({2, 3}, {1, 5, 4, 1, 8, 0});

std::vector<Tensor> gradients(Transformer& model) {
  std::vector<Tensor> result;
  for (NamedParameter& p : model.parameters()) {
    result.push_back(p.value.gradient());
    p.value.clear_gradient();
  }
  return result;
}

}  // namespace

TEST_CASE("the loss is the cross entropy of the logits, and a row does not depend on its padding or on other rows") {
  nn::check_loss(build(small_config()));
  nn::check_rows(build(small_config()));
}

TEST_CASE("the model is embed * sqrt(d_model) + positions, encoder, decoder, generator") {
  Transformer model = build(small_config());
  make_noisy(model, 2);
  Pass pass;
  const Variable positions = constant(nn::sinusoidal_table(4, 8));
  const Variable embedded = model.src_embed(source) * std::sqrt(8.0) + positions;
  const Mask padding = Mask::padding(Tensor::of<i32>({2}, {4, 2}));
  const Variable memory = model.encoder(embedded, padding, pass);
  const Variable begun = model.tgt_embed(target) * std::sqrt(8.0) + slice(positions, 0, 0, 3);
  const Mask causal = Mask::causal() & Mask::padding(Tensor::of<i32>({2}, {3, 2}));
  const Variable expected = model.generator(model.decoder(begun, memory, causal, padding, pass));
  CHECK(distance(nn::logits_of(model, source, target), expected.value()) < 1e-12);
  CHECK(distance(model(source, target, {padding, causal, padding}, pass).value(), expected.value()) < 1e-12);
  const Variable encoded = model.encode(source, padding, pass);
  CHECK(distance(encoded.value(), memory.value()) < 1e-12);
  CHECK(distance(model.decode(target, encoded, causal, padding, pass).value(), expected.value()) < 1e-12);
}

TEST_CASE("attention weights of every layer and head, rows that add up to 1, nothing for padding") {
  const Transformer model = build(small_config());
  nn::AttentionRecorder seen;
  Pass pass;
  pass.recorder = &seen;
  model(source, target, pass);
  REQUIRE(seen.all.size() == 6);
  for (const nn::EncoderLayer& layer : model.encoder.layers)
    CHECK(seen.of(*layer.self_attn).shape() == Shape{2, 2, 4, 4});
  for (const nn::DecoderLayer& layer : model.decoder.layers) {
    const Tensor self = seen.of(*layer.self_attn), cross = seen.of(*layer.multihead_attn);
    REQUIRE(self.shape() == Shape{2, 2, 3, 3});
    for (i64 i = 0; i < self.count(); ++i)
      if (i % 3 > i / 3 % 3) CHECK(self.at(i) == 0);  // a token sees none after it
    REQUIRE(cross.shape() == Shape{2, 2, 3, 4});
    CHECK(distance(sum(cross, {-1}), full({2, 2, 3}, 1.0)) < 1e-6);
    CHECK(distance(slice(cross.rows(1, 2), -1, 2), zeros({1, 2, 3, 2})) == 0);
  }
}

TEST_CASE("names are torch.nn.Transformer's, with embeddings and generator beside") {
  nn::TransformerConfig config = small_config();
  config.final_norm = true;
  Transformer model = build(config);
  const std::vector<std::string> names = names_of(model.parameters());
  const auto has = [&](const char* name) { return std::count(names.begin(), names.end(), name) == 1; };
  CHECK(names.front() == "src_embed.weight");
  CHECK(names.back() == "generator.bias");
  for (const char* name :
       {"tgt_embed.weight", "encoder.layers.1.self_attn.in_proj.weight", "encoder.layers.0.linear1.weight",
        "encoder.norm.weight", "decoder.layers.0.multihead_attn.out_proj.bias", "decoder.layers.1.norm3.weight",
        "decoder.norm.bias"}) {
    CAPTURE(name);
    CHECK(has(name));
  }
  CHECK(names.size() == 2 + 2 * 12 + 2 + 2 * 18 + 2 + 2);
}

TEST_CASE("shared embeddings are one matrix, counted once, through conversion and backward") {
  nn::TransformerConfig config = small_config();
  const i64 apart = build(config).parameter_count();
  config.share_embeddings = true;
  Transformer model = build(config);
  CHECK(model.parameter_count() == apart - 2 * 9 * 8);
  to(model, f64);
  CHECK(model.generator.weight.value().shares_memory_with(model.src_embed.weight.value()));
  Pass pass;
  backward(sum(model(source, target, pass)));
  CHECK(model.src_embed.weight.gradient().defined());
  CHECK(model.src_embed.weight.node() == model.generator.weight.node());
  Transformer copy = model.clone();
  CHECK(copy.generator.weight.value().shares_memory_with(copy.tgt_embed.weight.value()));
  CHECK(copy.parameter_count() == model.parameter_count());
}

TEST_CASE("without a pad_id every token counts") {
  nn::TransformerConfig config = small_config();
  config.pad_id = -1;
  const Transformer model = build(config);
  CHECK_FALSE(model.masks(source, target).source.has_padding());
  CHECK(model.masks(source, target).target.is_causal());
  Tensor other = source.clone();
  other.write<i32>()[7] = 3;
  CHECK(distance(nn::logits_of(model, source, target).rows(1, 2), nn::logits_of(model, other, target).rows(1, 2)) > 0);
}

TEST_CASE("micro-batches with unequal padding add up to the gradient of one batch") {
  Transformer model = build(small_config());
  to(model, f64);
  const Tensor answers = Tensor::of<i32>({2, 3}, {5, 4, 2, 8, 0, 0});  // 4 tokens count
  const CrossEntropyOptions options{
      .ignore_index = 0, .label_smoothing = 0.1, .reduction = Reduction::divisor, .divisor = 4};
  Pass pass;
  const CrossEntropyOptions mean{.ignore_index = 0, .label_smoothing = 0.1};
  backward(cross_entropy(model(source, target, pass), answers, mean));
  const std::vector<Tensor> whole = gradients(model);
  backward(cross_entropy(model(source.rows(0, 1), target.rows(0, 1), pass), answers.rows(0, 1), options));
  const Tensor short_source = slice(source.rows(1, 2), 1, 0, 2), short_target = slice(target.rows(1, 2), 1, 0, 1);
  backward(cross_entropy(model(short_source, short_target, pass), slice(answers.rows(1, 2), 1, 0, 1), options));
  const std::vector<Tensor> parts = gradients(model);
  for (size_t i = 0; i < whole.size(); ++i) CHECK(distance(whole[i], parts[i]) < 1e-14);
}

TEST_CASE("errors name the parameter, the id, or the limit") {
  Transformer model = build(small_config());
  Pass pass;
  Variable& weight = model.encoder.layers[0].feed_forward.linear1.weight;
  weight.replace_value(zeros({12, 7}));
  CHECK_THROWS_WITH_AS(model(source, target, pass), doctest::Contains("from parameter encoder.layers.0.linear1.weight"),
                       Error);
  const Transformer sound = build(small_config());
  CHECK_THROWS_WITH_AS(sound(full({1, 2}, 9, Dtype::i32), target.rows(0, 1), pass),
                       doctest::Contains("id 9 at position 0"), Error);
  CHECK_THROWS_WITH_AS(sound(full({2, 13}, 3, Dtype::i32), target, pass),
                       doctest::Contains("13 positions, but max_len is 12"), Error);
  CHECK_THROWS_AS(sound(source, target.rows(0, 1), pass), Error);
  CHECK_THROWS_AS(sound(source.reshape({8}), target, pass), Error);
}
