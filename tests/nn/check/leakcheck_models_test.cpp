// Chapter 7. Tests of what must not leak: every model is tight, and every fault is found where it was made.
#include "nn/check/leakcheck_models.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace orrery;
using nn::LeakCheck;
using nn::LeakReport;
using nn::MaskFault;

namespace {

constexpr nn::LayerOptions layer{.d_model = 8, .num_heads = 2, .d_ff = 12};

std::shared_ptr<nn::Transformer> transformer(bool norm_first, i32 pad_id = 0) {
  Rng rng(1);
  return std::make_shared<nn::Transformer>(
      nn::TransformerConfig{.src_vocab_size = 9,
                            .tgt_vocab_size = 7,
                            .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .norm_first = norm_first},
                            .num_encoder_layers = 2,
                            .num_decoder_layers = 2,
                            .final_norm = norm_first,
                            .max_len = 8,
                            .pad_id = pad_id},
      rng);
}

std::shared_ptr<nn::Gpt> gpt() {
  Rng rng(3);
  return std::make_shared<nn::Gpt>(
      nn::GptConfig{
          .vocab_size = 9, .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12}, .num_layers = 2, .max_len = 8},
      rng);
}

std::vector<LeakCheck> all_checks(MaskFault fault) {
  Rng rng(2);
  std::vector<LeakCheck> all;
  if (fault != MaskFault::causal)  // an encoder has no causal mask
    all = leakchecks(std::make_shared<nn::Encoder>(2, false, layer, rng), 8, fault);
  const auto add = [&](const std::vector<LeakCheck>& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(leakchecks(std::make_shared<nn::Decoder>(2, true, layer, rng), 8, fault));
  add(leakchecks(transformer(false), fault));
  add(leakchecks(transformer(true), fault));
  if (fault != MaskFault::padding) add(leakchecks(gpt(), fault));
  return all;
}

/// The checks that find a leak, "name: inputs -> outputs".
std::set<std::string> leaking(MaskFault fault) {
  std::set<std::string> names;
  for (const LeakCheck& c : all_checks(fault)) {
    const LeakReport report = leakcheck(c);
    CHECK(report.unmoved.empty());
    if (!report.ok()) names.insert(c.name + ": " + c.inputs + " -> " + c.outputs);
  }
  return names;
}

}  // namespace

TEST_CASE("no model leaks, and every pair that may touch does") {
  for (const LeakCheck& c : all_checks(MaskFault::none)) {
    const LeakReport report = leakcheck(c);
    INFO(report.name, ": ", report.inputs, " -> ", report.outputs);
    CHECK(report.ok());
    for (size_t i = 0; i < report.moved.size(); ++i) CHECK(report.moved[i] != report.forbidden[i]);
  }
}

TEST_CASE("a causal mask that is one too wide is found in decoders, and only there") {
  CHECK(leaking(MaskFault::causal) ==
        std::set<std::string>{"decoder: x -> y", "transformer: target -> logits", "gpt: ids -> logits"});
  const LeakReport report = leakcheck(leakchecks(transformer(false), MaskFault::causal)[2]);
  CHECK(report.message().starts_with("LEAK: target position 1 of row 0 -> logits position 0 of row 0, and "));
}

TEST_CASE("a padding mask that is one too long is found wherever there is padding") {
  CHECK(leaking(MaskFault::padding) == std::set<std::string>{"encoder: x -> y", "decoder: x -> y",
                                                             "decoder: memory -> y", "transformer: source -> memory",
                                                             "transformer: source -> logits",
                                                             "transformer: target -> logits"});
  const LeakReport report = leakcheck(leakchecks(transformer(true), MaskFault::padding)[1]);
  for (const nn::Leak& leak : report.leaks) {
    CHECK(leak.input.row == leak.output.row);
    CHECK(leak.input.position == (leak.input.row == 1 ? 4 : 2));  // lengths 6, 4 and 2
  }
}

TEST_CASE("a GPT sees every token up to its own, in its own row alone") {
  const LeakReport report = leakcheck(leakchecks(gpt())[0]);
  CHECK(report.T == 7);
  CHECK(std::count(report.moved.begin(), report.moved.end(), true) == 3 * 7 * 8 / 2);  // a triangle for each row
}

TEST_CASE("an output that depends on the other rows is found everywhere") {
  CHECK(leaking(MaskFault::batch).size() == 7);
  const LeakReport report = leakcheck(leakchecks(transformer(false), MaskFault::batch)[1]);
  for (const nn::Leak& leak : report.leaks) CHECK(leak.input.row != leak.output.row);
}

TEST_CASE("a model without padding is checked without it") {
  for (const LeakCheck& c : leakchecks(transformer(false, -1))) CHECK(leakcheck(c).ok());
  CHECK_FALSE(leakcheck(leakchecks(transformer(false, -1), MaskFault::causal)[2]).ok());
  CHECK_THROWS_AS(leakchecks(transformer(false, -1), MaskFault::padding), Error);
  CHECK_THROWS_WITH_AS(leakchecks(gpt(), MaskFault::padding), "leakcheck: this model has no padding to break", Error);
}

TEST_CASE("attention by tiles hides what it must, and shows the rest") {
  Rng rng(4);
  const auto decoder = std::make_shared<nn::Decoder>(1, false, layer, rng);
  nn::to(*decoder, f64);
  for (LeakCheck& c : leakchecks_in_tiles(decoder, 8)) {
    c.all_must_move = true;
    const LeakReport report = leakcheck(c);
    CHECK_MESSAGE(report.ok(), report.message());
    CHECK(report.positions.size() >= 5);
    CHECK(report.S > 512);
  }
}
