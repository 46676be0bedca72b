// Chapter 7. Copying: P by its definition, models that copy, step by step and in files, and what only they can say.
#include "nn/attention/copy.h"

#include <doctest/doctest.h>

#include "core/choosing.h"
#include "nn/files/files.h"
#include "nn/generate/decoder_state.h"
#include "optim/adam.h"
#include "tests/core/temporary_folder.h"
#include "tests/nn/models/translator_checks.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

TransformerConfig small_copier(bool copy = true) {
  return {.src_vocab_size = 9,
          .tgt_vocab_size = 9,
          .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0},
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .max_len = 12,
          .copy = copy};
}

}  // namespace

TEST_CASE("P is a share of P_vocab and of what is pointed at, padding is never copied, and P sums to 1") {
  constexpr i64 D = 6, K = 7;
  Rng rng(1);
  Copy layer(D, rng);
  make_noisy(layer, 2);
  const Variable h = constant(randn({2, 3, D}, rng, f64)), memory = constant(randn({2, 4, D}, rng, f64)),
                 logits = constant(randn({2, 3, K}, rng, f64));
  const Tensor source = Tensor::of<i32>({2, 4}, {3, 1, 3, 5, 6, 2, 0, 0}),
               target = Tensor::of<i32>({2, 3}, {3, 4, 1, 6, 2, 0});
  const std::vector<i32> lengths{4, 2};
  const Tensor log_p = layer(h, logits, layer.read(source, memory, Mask::padding(lengths)), target).value();
  const Tensor q = layer.query(h).value(), k = layer.key(memory).value(), p_vocab = softmax(logits).value(),
               p_gen = sigmoid(layer.gate(h)).value(), f = layer.follow(h).value();
  for (i64 b = 0; b < 2; ++b) {
    for (i64 t = 0; t < 3; ++t) {
      std::vector<double> p(K, 0.0);
      double total = 0, sum = 0;
      for (i64 i = 0; i < lengths[static_cast<size_t>(b)]; ++i) {
        double score = 0;
        for (i64 d = 0; d < D; ++d) score += q(b, t, d) * k(b, i, d) / std::sqrt(6.0);
        if (i > 0 && source(b, i - 1) == target(b, t)) score += f(b, t, 0);
        p[static_cast<size_t>(source(b, i))] += std::exp(score);
        total += std::exp(score);
      }
      for (i64 w = 0; w < K; ++w) {
        const double gen = p_gen(b, t, 0), copied = p[static_cast<size_t>(w)] / total;
        CHECK(std::exp(log_p(b, t, w)) == doctest::Approx(gen * p_vocab(b, t, w) + (1 - gen) * copied).epsilon(1e-12));
        sum += std::exp(log_p(b, t, w));
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-12));
    }
  }
}

TEST_CASE("a word that neither the vocabulary nor the source gives a chance has a finite loss in f32, and a gradient") {
  Rng rng(1);
  const Copy layer(4, rng);
  const Variable h = constant(zeros({1, 1, 4})), logits = parameter(Tensor::of<float>({1, 1, 3}, {0, 300, 0}));
  const CopySource source = layer.read(Tensor::of<i32>({1, 2}, {1, 1}), constant(zeros({1, 2, 4})), Mask());
  const Variable loss = cross_entropy(layer(h, logits, source, full({1, 1}, 1, Dtype::i32)),
                                      Tensor::of<i32>({1, 1}, {2}), {.label_smoothing = 0.1});
  backward(loss);
  CHECK(loss.item() > 30);
  CHECK(all_finite(loss.value()));
  CHECK(all_finite(logits.gradient()));
}

TEST_CASE("a model that copies: its loss, its rows, what its logits see, its copy") {
  check_loss(built<Transformer>(small_copier()));
  check_rows(built<Transformer>(small_copier()));
  check_sight(built<Transformer>(small_copier()));
  check_sharing<Transformer>(small_copier(), 2 * 9 * 8);
  TransformerConfig config = small_copier();
  CHECK(config.parameter_count() == built<Transformer>(config).parameter_count());
  config.tgt_vocab_size = 8;
  CHECK_THROWS_WITH_AS(config.validate(), doctest::Contains("copy needs one vocabulary, but the sizes are 9 and 8"),
                       Error);
}

TEST_CASE("without copying a model is as it was: the weights drawn, their names, and with p_gen = 1 what it says") {
  Transformer plain = built<Transformer>(small_copier(false)), copier = built<Transformer>(small_copier());
  const Parameters before = plain.parameters(), after = copier.parameters();
  REQUIRE(after.size() == before.size() + 7);
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i].name == before[i].name);
    CHECK(same_bits(after[i].value.value(), before[i].value.value()));
  }
  CHECK(after[before.size()].name == "copy.query.weight");
  CHECK(TransformerConfig::of_json("{\"src_vocab_size\": 9, \"tgt_vocab_size\": 9}").copy == false);
  fill(copier.copy->gate.weight.mutable_value(), 0.0);
  fill(copier.copy->gate.bias.mutable_value(), 50.0);
  const Tensor logits = logits_of(plain, short_source, short_target);
  CHECK(distance(logits_of(copier, short_source, short_target), log_softmax(constant(logits)).value()) < 1e-6);
}

TEST_CASE("a model that copies goes through a file, needs its source, and only padding may be hidden") {
  const TemporaryFolder folder;
  const std::string path = folder / "copier.safetensors";
  Transformer model = built<Transformer>(small_copier());
  save(model, path, {{std::string(config_key), to_json(model.config)}});
  CHECK(same_bits(logits_of(load<Transformer>(path), short_source, short_target),
                  logits_of(model, short_source, short_target)));
  const NoGradient nothing_recorded;
  Pass pass;
  const Variable memory = model.encode(short_source, Mask(), pass);
  const char* no_source = "copy: needs the source, whose words it copies";
  CHECK_THROWS_WITH_AS(model.decode(short_target, memory, Mask::causal(), Mask(), pass), no_source, Error);
  CHECK_THROWS_WITH_AS(decoder_state(model, memory, Mask(), 3), no_source, Error);
  CHECK_THROWS_WITH_AS(model.copied(short_source, memory, Mask::window(1)),
                       "copy: words that a mask hides would be copied: it may only be padding", Error);
  CHECK_THROWS_WITH_AS(model.copied(short_target, memory, Mask()), doctest::Contains("does not fit a memory"), Error);
  DecoderState state = decoder_state(model, memory, Mask(), 3, short_source);
  const Transformer plain = built<Transformer>(small_copier(false));
  CHECK_THROWS_WITH_AS(next_logits(plain, slice(short_target, 1, 0, 1), state),
                       "transformer: what can be copied is of another model", Error);
  CHECK(state.length == 0);
}

TEST_CASE("step by step as all at once, also after other sequences were chosen") {
  Transformer model = built<Transformer>(small_copier());
  make_noisy(model, 3);
  Rng rng(4);
  const Tensor source = Tensor::of<i32>({3, 5}, {3, 4, 5, 6, 7, 8, 3, 0, 0, 0, 5, 5, 4, 0, 0});
  const std::vector<i64> chosen{2, 0, 0, 1};
  for (const Dtype dtype : {f64, f32}) {
    to(model, dtype);
    const NoGradient nothing_recorded;
    Pass pass;
    const Mask mask = model.padding(source);
    DecoderState state = decoder_state(model, model.encode(source, mask, pass), mask, 6, source);
    const Tensor target = randint(1, 9, {3, 6}, rng), begun = slice(target, 1, 0, 2);
    CHECK(relative(next_logits(model, begun, state).value(), logits_of(model, source, begun)) < bound(dtype));
    state.choose(chosen);
    const Tensor whole = logits_of(model, chosen_rows(source, chosen), chosen_rows(target, chosen));
    for (i64 t = 2; t < 6; ++t) {
      const Tensor token = slice(chosen_rows(target, chosen), 1, t, t + 1);
      CHECK(relative(next_logits(model, token, state).value(), slice(whole, 1, t, t + 1)) < bound(dtype));
    }
  }
}

TEST_CASE("words that no summary had in training can be said by copying, and only so") {
  constexpr i32 first_word = 3, unseen = 900, words = 1000;
  const auto said = [&](bool copy) {
    TransformerConfig config = small_copier(copy);
    config.src_vocab_size = config.tgt_vocab_size = words;
    config.layer.d_model = 32;
    config.num_encoder_layers = config.num_decoder_layers = 1;
    Transformer model = built<Transformer>(config);
    optim::Adam adam(model.parameters());
    Rng rng(2);
    const Tensor begin = full({32, 1}, 1, Dtype::i32);
    // A text begins with its subject.
    const auto texts = [&](i32 from, i32 to) {
      return concat({randint(from, to, {32, 1}, rng), randint(first_word, words, {32, 5}, rng)}, 1);
    };
    for (i64 step = 1; step <= 300; ++step) {
      const Tensor source = texts(first_word, unseen);
      Pass pass = Pass::training(1, step);
      backward(model.loss(source, begin, slice(source, 1, 0, 1), pass));
      adam.step(0.003);
    }
    const Tensor source = texts(unseen, words);
    return accuracy(logits_of(model, source, begin), slice(source, 1, 0, 1));
  };
  CHECK(said(true) > 0.6);  // pointing at any of the six words: 0.17
  CHECK(said(false) < 0.1);
}
