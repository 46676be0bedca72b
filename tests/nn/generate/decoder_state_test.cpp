// Chapter 7. Both decoders one step at a time give the logits of the whole, in f32 and f64, and leak no memory.
#include "nn/generate/decoder_state.h"

#include <doctest/doctest.h>

#include "core/machine/memory.h"
#include "nn/models/gpt.h"
#include "tests/core/support.h"
#include "tests/nn/compare.h"
#include "tests/nn/generate/linear_attention.h"
#include "tests/nn/generate/step_again.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

TransformerConfig small_transformer() {
  return {.src_vocab_size = 11,
          .tgt_vocab_size = 13,
          .layer = {.d_model = 24, .num_heads = 3, .d_ff = 40},
          .num_encoder_layers = 1,
          .num_decoder_layers = 2,
          .max_len = 20,
          .pad_id = 0};
}

GptConfig gpt_of_two_layers() {
  return {.vocab_size = 17, .layer = {.d_model = 24, .num_heads = 3, .d_ff = 40}, .num_layers = 2, .max_len = 20};
}

// The last outputs of cutting `tokens` into pieces, joined.
template <class Next> Tensor in_pieces(const Tensor& tokens, const std::vector<i64>& pieces, const Next& next) {
  std::vector<Tensor> parts;
  i64 begin = 0;
  for (const i64 n : pieces) {
    parts.push_back(next(slice(tokens, 1, begin, begin + n)));
    begin += n;
  }
  return concat(parts, 1);
}

const std::vector<std::vector<i64>> cuts{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {12}, {7, 1, 4}, {1, 11}};

}  // namespace

TEST_CASE("in pieces as all at once: a Transformer's decoder, both norms, both positions, padded sources") {
  Rng rng(1);
  const Tensor source = Tensor::of<i32>({3, 5}, {3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 10, 3, 4, 0, 0});
  const Tensor target = randint(1, 13, {3, 12}, rng);
  for (const bool pre_norm : {false, true}) {
    TransformerConfig config = small_transformer();
    config.layer.norm_first = config.final_norm = pre_norm;
    config.positions = pre_norm ? Positions::learned : Positions::sinusoidal;
    Transformer model(config, rng);
    make_noisy(model, 3);
    for (const Dtype dtype : {f64, f32}) {
      to(model, dtype);
      const NoGradient nothing_recorded;
      Pass pass = Pass::inference();
      const Mask mask = model.padding(source);
      const Variable memory = model.encode(source, mask, pass);
      const Tensor whole = model.decode(target, memory, Mask::causal(), mask, pass).value();
      for (const std::vector<i64>& pieces : cuts) {
        DecoderState state = decoder_state(model, memory, mask, 12);
        const Tensor logits = in_pieces(target, pieces, [&](const Tensor& tokens) {
          return model.generator(next_positions(model, tokens, state)).value();
        });
        CHECK(state.length == 12);
        CHECK(relative(logits, whole) < bound(dtype));
      }
    }
  }
}

TEST_CASE("in pieces as all at once: a GPT, tied or not, each GELU, with rotary positions and normalised Q and K") {
  Rng rng(2);
  const Tensor ids = randint(0, 17, {3, 12}, rng);
  for (const bool tied : {true, false}) {
    GptConfig config = gpt_of_two_layers();
    config.tied = config.layer.bias = tied;
    config.layer.activation = tied ? Activation::gelu_tanh : Activation::gelu;
    for (const bool rotary : {true, false}) {
      config.rotary = rotary;
      config.query_key_norm = rotary != tied;  // each alone, both and none
      Gpt model(config, rng);
      make_noisy(model, 4);
      for (const Dtype dtype : {f64, f32}) {
        to(model, dtype);
        const NoGradient nothing_recorded;
        Pass pass = Pass::inference();
        const Tensor whole = model(ids, pass).value();
        for (const std::vector<i64>& pieces : cuts) {
          DecoderState state = decoder_state(model, 3, 20);
          const Tensor logits = in_pieces(ids, pieces, [&](const Tensor& tokens) {
            return model.head(next_positions(model, tokens, state)).value();
          });
          CHECK(relative(logits, whole) < bound(dtype));
        }
      }
    }
  }
}

TEST_CASE("in pieces as all at once: an attention of one's own, whose state is its sums, in a GPT and a Transformer") {
  Rng rng(2);
  Gpt gpt(gpt_of_two_layers(), rng);
  for (auto& layer : gpt.layers) layer.self_attn = LinearAttention(24, rng);
  Transformer transformer(small_transformer(), rng);
  make_linear(transformer, rng);
  to(gpt, f64);
  to(transformer, f64);
  const NoGradient nothing_recorded;
  Pass pass = Pass::inference();
  const Tensor source = Tensor::of<i32>({3, 5}, {3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 10, 3, 4, 0, 0});
  const Tensor ids = randint(1, 13, {3, 12}, rng);
  const Mask mask = transformer.padding(source);
  const Variable memory = transformer.encode(source, mask, pass);
  const auto check_model = [&](const auto& model, const Tensor& whole, const auto& begun) {
    const auto next = [&](const Tensor& tokens, DecoderState& state) {
      return next_positions(model, tokens, state).value();
    };
    for (const std::vector<i64>& pieces : cuts) {
      DecoderState state = begun();
      const auto step = [&](const Tensor& tokens) { return next(tokens, state); };
      CHECK(relative(in_pieces(ids, pieces, step), whole) < bound(f64));
    }
    check_step_again(begun, next);
  };
  check_model(gpt, gpt.hidden(ids, pass).value(), [&] { return decoder_state(gpt, 3, 12); });
  check_model(transformer, transformer.hidden(ids, memory, Mask::causal(), mask, pass).value(),
              [&] { return decoder_state(transformer, memory, mask, 12); });
}

TEST_CASE("a GPT beyond 512 positions, where attention goes by tiles: logits and likeliest tokens agree") {
  constexpr i64 T = 530;
  GptConfig config = gpt_of_two_layers();
  config.max_len = T;
  Rng rng(6);
  Gpt model(config, rng);
  make_noisy(model, 7);
  const Tensor ids = randint(0, 17, {2, T}, rng);
  for (const Dtype dtype : {f64, f32}) {
    to(model, dtype);
    const NoGradient nothing_recorded;
    Pass pass = Pass::inference();
    const Tensor whole = model(ids, pass).value();
    for (const std::vector<i64>& pieces : std::vector<std::vector<i64>>{{T - 3, 1, 1, 1}, {500, 1, 29}}) {
      DecoderState state = decoder_state(model, 2, T);
      const Tensor logits = in_pieces(
          ids, pieces, [&](const Tensor& tokens) { return model.head(next_positions(model, tokens, state)).value(); });
      CHECK(relative(logits, whole) < bound(dtype));
      CHECK(same_bits(argmax(logits), argmax(whole)));
    }
  }
}

TEST_CASE("the encoder's output is projected once: changing it later changes no output") {
  Rng rng(8);
  Transformer model(small_transformer(), rng);
  const NoGradient nothing_recorded;
  Pass pass = Pass::inference();
  const Tensor target = randint(1, 13, {2, 3}, rng);
  const Variable memory = model.encode(randint(1, 11, {2, 5}, rng), Mask(), pass);
  DecoderState quiet = decoder_state(model, memory, Mask(), 3), changed = decoder_state(model, memory, Mask(), 3);
  const Tensor expected = next_positions(model, target, quiet).value();
  Tensor numbers = memory.value();
  fill(numbers, 7.0);
  CHECK(same_bits(next_positions(model, target, changed).value(), expected));
}

TEST_CASE("a state of another model is refused: other layers, another dtype") {
  Rng rng(9);
  GptConfig three = gpt_of_two_layers(), one = gpt_of_two_layers();
  three.num_layers = 3;
  one.num_layers = 1;
  Gpt model(gpt_of_two_layers(), rng);
  const NoGradient nothing_recorded;
  const Tensor tokens = randint(0, 17, {2, 1}, rng);
  for (const GptConfig& config : {three, one}) {
    DecoderState state = decoder_state(Gpt(config, rng), 2, 4);
    CHECK_THROWS_WITH_AS(next_positions(model, tokens, state), doctest::Contains("layers, this one has 2"), Error);
  }
  GptConfig other_heads = gpt_of_two_layers();
  other_heads.layer.num_heads = 4;
  DecoderState four = decoder_state(Gpt(other_heads, rng), 2, 4);
  CHECK_THROWS_WITH_AS(next_positions(model, tokens, four),
                       doctest::Contains("has 4 heads of 6 and 6, this attention 3 of 8 and 8"), Error);
  DecoderState single = decoder_state(model, 2, 4);
  to(model, f64);
  CHECK_THROWS_WITH_AS(next_positions(model, tokens, single), doctest::Contains("dtypes differ (f64 and f32)"), Error);
  TransformerConfig config = small_transformer();
  Transformer transformer(config, rng);
  config.num_decoder_layers = 1;
  const Transformer shallow(config, rng);
  Pass pass = Pass::inference();
  const Variable memory = transformer.encode(randint(1, 11, {2, 3}, rng), Mask(), pass);
  DecoderState state = decoder_state(shallow, memory, Mask(), 4);
  CHECK_THROWS_WITH_AS(next_positions(transformer, tokens, state),
                       doctest::Contains("is of a model of 1 layers, this one has 2"), Error);
}

TEST_CASE("a step that failed, at whichever operation, can be made again") {
  Rng rng(9);
  const Gpt gpt(gpt_of_two_layers(), rng);
  const Transformer transformer(small_transformer(), rng);
  Pass pass = Pass::inference();
  const Variable memory = transformer.encode(randint(1, 11, {3, 3}, rng), Mask(), pass);
  const auto check_model = [](const auto& model, const auto& begun) {
    check_step_again(begun, [&](const Tensor& ids, auto& state) { return next_positions(model, ids, state).value(); });
  };
  const NoGradient nothing_recorded;
  check_model(gpt, [&] { return decoder_state(gpt, 3, 8); });
  check_model(transformer, [&] { return decoder_state(transformer, memory, Mask(), 8); });
}

TEST_CASE("without recording, a forward pass leaves its result and nothing else in memory") {
  if (!small::counts_memory()) return;
  Rng rng(4);
  Transformer transformer(small_transformer(), rng);
  Gpt gpt(gpt_of_two_layers(), rng);
  const Tensor source = randint(1, 11, {2, 7}, rng), ids = randint(1, 13, {2, 9}, rng);
  const auto live = [] { return memory_counters().live_bytes; };
  const i64 before = live();
  for (const Pass& mode : {Pass::inference(), Pass::training(1, 1)}) {
    Pass pass = mode;
    const NoGradient nothing_recorded;
    const Variable a = transformer(source, ids, pass), b = gpt(ids, pass);
    CHECK(live() - before <= a.value().bytes() + b.value().bytes() + 4 * 64);
  }
  CHECK(live() == before);
  {
    Pass pass = Pass::inference();
    const Variable recorded = gpt(ids, pass);
    CHECK(live() - before > 10 * recorded.value().bytes());  // the measure is a measure
  }
  CHECK(live() == before);
  {
    const NoGradient nothing_recorded;
    DecoderState state = decoder_state(gpt, 2, 9);
    const i64 with_state = live();
    next_positions(gpt, slice(ids, 1, 0, 5), state);
    for (i64 t = 5; t < 9; ++t) next_positions(gpt, slice(ids, 1, t, t + 1), state);
    CHECK(live() == with_state);
  }
  CHECK(live() == before);
}

TEST_CASE("more positions than the state has room for are an error, and so is recording") {
  Rng rng(5);
  Gpt model(gpt_of_two_layers(), rng);
  const Tensor ids = randint(0, 17, {1, 3}, rng);
  CHECK_THROWS_WITH_AS(decoder_state(model, 1, 21),
                       "decoder state: max_len must be from 1 to 20, the model's positions, not 21", Error);
  DecoderState state = decoder_state(model, 1, 4);
  CHECK_THROWS_WITH_AS(next_positions(model, ids, state), doctest::Contains("nothing may be recorded"), Error);
  const NoGradient nothing_recorded;
  next_positions(model, ids, state);
  CHECK_THROWS_WITH_AS(next_positions(model, ids, state), doctest::Contains("is full: 3 + 3 positions of 4"), Error);
  Transformer transformer(small_transformer(), rng);
  Pass pass = Pass::inference();
  const Variable memory = transformer.encode(randint(1, 11, {1, 3}, rng), Mask(), pass);
  CHECK_THROWS_AS(decoder_state(transformer, memory, Mask(), 0), Error);
}

TEST_CASE("the caches of a Transformer's decoder begin small, grow when they are full, and end at the longest target") {
  Rng rng(6);
  TransformerConfig config = small_transformer();
  config.max_len = 100;
  Transformer model(config, rng);
  const NoGradient nothing_recorded;
  Pass pass = Pass::inference();
  const Variable memory = model.encode(randint(1, 11, {2, 3}, rng), Mask(), pass);
  const auto capacities = [&](i64 max_len) {
    DecoderState state = decoder_state(model, memory, Mask(), max_len);
    const auto capacity = [&] { return state.self_attn[1].as<KeyValueCache>().capacity(); };
    std::vector<i64> found{capacity()};
    while (state.length < max_len) {
      next_positions(model, full({2, 1}, 4, Dtype::i32), state);
      if (capacity() != found.back()) found.push_back(capacity());
    }
    return found;
  };
  CHECK(capacities(100) == std::vector<i64>{25, 50, 100});
  CHECK(capacities(9) == std::vector<i64>{9});
}
