// Chapter 7. Tests of the leak check: functions whose every connection is known; every model is tight, and every fault
// is found where it was made.
#include "nn/check/leakcheck.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/tensor_ops.h"
#include "nn/check/leakcheck_models.h"
#include "nn/models/gpt.h"
#include "tests/core/support.h"

using namespace orrery;
using nn::LeakCheck;
using nn::LeakReport;
using nn::MaskFault;
using nn::Place;
using small::error_of;
using small::text_of;

namespace {

/// y[b, t] = sum over s of x[b, s] where sees(s, t); ids [B, S] to [B, S].
template <class Sees> Tensor sums(const Tensor& ids, Sees sees) {
  const i64 B = ids.size(0), S = ids.size(1);
  Tensor y = zeros({B, S}, f64);
  for (i64 b = 0; b < B; ++b) {
    for (i64 t = 0; t < S; ++t) {
      for (i64 s = 0; s < S; ++s) y.write<double>()[b * S + t] += sees(s, t) ? ids.at(b * S + s) : 0;
    }
  }
  return y;
}

LeakCheck causal_sum(i64 reach) {
  return {.name = "sum",
          .inputs = "token",
          .outputs = "total",
          .input = Tensor::of<i32>({2, 3}, {1, 2, 3, 4, 0, 2}),
          .output = [=](const Tensor& ids) { return sums(ids, [=](i64 s, i64 t) { return s <= t + reach; }); },
          .may_move = nn::within_sequence(true),
          .vocabulary = 5};
}

}  // namespace

TEST_CASE("a causal function does not leak, and its matrix is a triangle for each row") {
  const nn::LeakReport report = leakcheck(causal_sum(0));
  CHECK(report.ok());
  CHECK(text_of(report) ==
        "sum: which token (across) moves which total (down)\n"
        "          row 0   row 1\n"
        "row 0   0 # . .   . . .\n"
        "        1 # # .   . . .\n"
        "        2 # # #   . . .\n"
        "\n"
        "row 1   0 . . .   # . .\n"
        "        1 . . .   # # .\n"
        "        2 . . .   # # #\n"
        "no leak: 24 of 36 pairs must not touch, and do not; of the other 12, 12 do\n");
}

TEST_CASE("a pair that may touch and does not is a failure where all must") {
  LeakCheck c = causal_sum(0);
  c.output = [](const Tensor& ids) { return sums(ids, [](i64 s, i64 t) { return s == t; }); };  // a dead attention
  CHECK(leakcheck(c).ok());
  CHECK(leakcheck(c).message().ends_with("of the other 12, 6 do"));
  c.all_must_move = true;
  const nn::LeakReport report = leakcheck(c);
  CHECK_FALSE(report.ok());
  REQUIRE(report.idle.size() == 6);
  CHECK(report.message() ==
        "idle: token position 0 of row 0 may move total position 1 of row 0, and does not; such pairs: 6");
  LeakCheck alive = causal_sum(0);
  alive.all_must_move = true;
  CHECK(leakcheck(alive).ok());
}

TEST_CASE("two moves of a token differ as soon as the vocabulary has three") {
  std::set<double> seen;
  LeakCheck c = causal_sum(0);
  c.input = Tensor::of<i32>({1, 2}, {1, 1});
  c.vocabulary = 3;
  c.output = [&](const Tensor& ids) {
    seen.insert(ids.at(0));
    return sums(ids, [](i64 s, i64 t) { return s <= t; });
  };
  leakcheck(c);
  CHECK(seen == std::set<double>{0, 1, 2});
}

TEST_CASE("one token too many is a leak, told as its pair of positions") {
  const nn::LeakReport report = leakcheck(causal_sum(1));
  CHECK_FALSE(report.ok());
  REQUIRE(report.leaks.size() == 4);
  CHECK(report.leaks[0].input == Place{0, 1});
  CHECK(report.leaks[0].output == Place{0, 0});
  CHECK(report.leaks[3].input == Place{1, 2});
  CHECK(report.leaks[3].output == Place{1, 1});
  CHECK(report.message() == "LEAK: token position 1 of row 0 -> total position 0 of row 0, and 3 more");
  CHECK(text_of(report).find("row 0   0 # X .   . . .\n") != std::string::npos);
}

TEST_CASE("the smallest change of the bits is a leak: no tolerance hides it") {
  LeakCheck c = causal_sum(0);
  c.output = [](const Tensor& ids) {
    Tensor y = sums(ids, [](i64 s, i64 t) { return s <= t; });
    y.write<double>()[0] += 1e-15 * ids.at(5);
    return y;
  };
  const nn::LeakReport report = leakcheck(c);
  REQUIRE(report.leaks.size() == 1);
  CHECK(report.leaks[0].input == Place{1, 2});
  CHECK(report.leaks[0].output == Place{0, 0});
}

TEST_CASE("an output that nothing moves was not checked, and an allowed pair that does not move is shown") {
  LeakCheck c = causal_sum(0);
  c.output = [](const Tensor& ids) { return sums(ids, [](i64 s, i64 t) { return s < t; }); };
  const nn::LeakReport report = leakcheck(c);
  CHECK(report.leaks.empty());
  CHECK_FALSE(report.ok());
  REQUIRE(report.unmoved.size() == 2);
  CHECK(report.unmoved[1] == Place{1, 0});
  CHECK(report.message() == "nothing was checked: no input moves total position 0 of row 0");
  CHECK(text_of(report).find("        1 # - .   . . .\n") != std::string::npos);
}

TEST_CASE("vectors are moved as whole positions; lengths differ; several numbers make an output") {
  Rng rng(1);
  const Tensor lengths = Tensor::of<i32>({2}, {3, 1});
  LeakCheck c{.name = "mean",
              .input = randn({2, 3, 4}, rng),
              .output =
                  [](const Tensor& x) {
                    const Tensor first = slice(x, 1, 0, 1);
                    return concat({first + first, first}, 1).reshape({2, 2, 2, 2});
                  },
              .may_move = nn::across_sequences(lengths)};
  CHECK(leakcheck(c).ok());
  c.output = [](const Tensor& x) { return concat({mean(x, {1}, true), slice(x, 1, 0, 1)}, 1); };
  const nn::LeakReport report = leakcheck(c);
  REQUIRE(report.leaks.size() == 2);  // the mean reads the padding of row 1
  CHECK(report.leaks[1].input == Place{1, 2});
  CHECK(report.leaks[1].output == Place{1, 0});
}

TEST_CASE("an input may reach its own row, only later places if causal, and as padding nothing but itself") {
  const Tensor lengths = Tensor::of<i32>({2}, {3, 1});
  const auto may = nn::within_sequence(true, lengths);
  CHECK(may({0, 1}, {0, 1}));
  CHECK(may({0, 0}, {0, 2}));
  CHECK_FALSE(may({0, 2}, {0, 1}));
  CHECK_FALSE(may({1, 1}, {1, 2}));
  CHECK(may({1, 2}, {1, 2}));  // padding sees itself
  CHECK_FALSE(may({0, 0}, {1, 0}));
  CHECK(nn::within_sequence(false)({0, 2}, {0, 1}));
  CHECK_FALSE(nn::across_sequences(lengths)({1, 1}, {1, 1}));
  CHECK(nn::across_sequences(lengths)({1, 0}, {1, 5}));
}

TEST_CASE("what cannot be checked is refused") {
  LeakCheck short_lengths = causal_sum(0);
  short_lengths.may_move = nn::within_sequence(true, Tensor::of<i32>({1}, {3}));
  CHECK(small::contains(error_of([&] { leakcheck(short_lengths); }), "element 1 is out of range"));
  LeakCheck c = causal_sum(0);
  c.vocabulary = 1;
  CHECK(error_of([&] { leakcheck(c); }) == "leakcheck: moving a token takes a vocabulary of at least 2, not 1");
  c = causal_sum(0);
  c.output = [](const Tensor& ids) { return zeros({1, ids.size(1)}); };
  CHECK(error_of([&] { leakcheck(c); }) == "leakcheck: the output needs shape [2, T, ...], has [1, 3]");
  c.output = [](const Tensor&) { return zeros({2, 0, 4}); };
  CHECK(error_of([&] { leakcheck(c); }) == "leakcheck: the output needs shape [2, T, ...], has [2, 0, 4]");
  c.input = zeros({2, 3});
  CHECK(error_of([&] { leakcheck(c); }) == "leakcheck: needs token ids [B, S] or vectors [B, S, D]");
}

TEST_CASE("positions that are not moved stay empty in the matrix") {
  LeakCheck c = causal_sum(0);
  c.positions = {1};
  CHECK(text_of(leakcheck(c)) ==
        "sum: which token (across) moves which total (down)\n"
        "          row 0   row 1\n"
        "row 0   0   .       .  \n"
        "        1   #       .  \n"
        "        2   #       .  \n"
        "\n"
        "row 1   0   .       .  \n"
        "        1   .       #  \n"
        "        2   .       #  \n"
        "no leak: 8 of 12 pairs must not touch, and do not; of the other 4, 4 do\n");
}

TEST_CASE("of a long sequence some positions are moved, and it is not drawn") {
  LeakCheck c = causal_sum(0);
  Rng rng(7);
  c.input = randint(0, 5, {2, 40}, rng);
  c.positions = {0, 17, 39};
  nn::LeakReport report = leakcheck(c);
  CHECK(report.ok());
  CHECK(text_of(report) ==
        "sum: which token (across) moves which total (down)\n"
        "2 rows, 3 of 40 inputs by 40 outputs each: too many to draw\n"
        "no leak: 352 of 480 pairs must not touch, and do not; of the other 128, 128 do\n");
  c.output = causal_sum(1).output;
  report = leakcheck(c);
  CHECK(report.message().starts_with("LEAK: token position 17 of row 0 -> total position 16 of row 0, and 3 more"));
  c.positions = {40};
  CHECK(error_of([&] { leakcheck(c); }) == "leakcheck: there is no position 40 to move");
}

TEST_CASE("an input without a position is refused: nothing would be checked") {
  LeakCheck c = causal_sum(0);
  c.input = Tensor::empty({2, 0}, Dtype::i32);
  CHECK(error_of([&] { leakcheck(c); }).ends_with("has nothing to move: nothing is checked"));
}

namespace {

constexpr nn::LayerOptions layer{.d_model = 8, .num_heads = 2, .d_ff = 12};

std::shared_ptr<nn::Transformer> transformer(bool norm_first, i32 pad_id = 0, bool copy = false) {
  Rng rng(1);
  return std::make_shared<nn::Transformer>(
      nn::TransformerConfig{.src_vocab_size = 9,
                            .tgt_vocab_size = copy ? 9 : 7,
                            .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .norm_first = norm_first},
                            .num_encoder_layers = 2,
                            .num_decoder_layers = 2,
                            .final_norm = norm_first,
                            .max_len = 8,
                            .pad_id = pad_id,
                            .copy = copy},
      rng);
}

std::shared_ptr<nn::Gpt> gpt() {
  Rng rng(3);
  return std::make_shared<nn::Gpt>(
      nn::GptConfig{
          .vocab_size = 9, .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12}, .num_layers = 2, .max_len = 8},
      rng);
}

std::shared_ptr<nn::Bert> bert(bool sentence_sums) {
  Rng rng(4);
  return std::make_shared<nn::Bert>(nn::BertConfig{.vocab_size = 9,
                                                   .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12},
                                                   .num_layers = 2,
                                                   .max_positions = 8,
                                                   .type_vocab_size = sentence_sums ? 3 : 2,
                                                   .sentence_sums = sentence_sums},
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
  add(leakchecks(transformer(false, 0, true), fault));
  if (fault != MaskFault::padding) add(leakchecks(gpt(), fault));
  for (const bool sentence_sums : {false, true})
    if (fault != MaskFault::causal) add(leakchecks(bert(sentence_sums), fault));
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
  CHECK(leaking(MaskFault::padding) ==
        std::set<std::string>{"encoder: x -> y", "decoder: x -> y", "decoder: memory -> y",
                              "transformer: source -> memory", "transformer: source -> logits",
                              "transformer: target -> logits", "bert: ids -> y", "bert: segments -> y",
                              "bert: ids -> pooled", "bert: ids -> sentences"});
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
  CHECK(leaking(MaskFault::batch).size() == 11);
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
