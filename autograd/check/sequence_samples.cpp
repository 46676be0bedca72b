// Chapter 8. The samples of recurrence, convolution and the gated linear unit: with padding, without optional inputs.
//
// Serves: autograd/check/proof.h
#include "autograd/check/sample_rows.h"
#include "autograd/ops.h"
#include "core/mask.h"

namespace orrery::sample_rows {
namespace {

// Sequences of two positions, so that there are more positions than a chunk of a loop has elements.
constexpr int long_pairs = long_rows / 2;

void add_gru(std::vector<Sample>& table) {
  const auto add = [&](const std::string& variant, i64 B, i64 steps, i64 H, const Mask& mask, bool reverse,
                       std::vector<DeclaredZero> zeros = {}) {
    table.push_back(sample(
        "gru", variant, {{{B, steps, 3 * H}}, {{B, H}}, {{3 * H, H}}, {{3 * H}}},
        [=](const Variables& x) { return gru(x[0], x[1], x[2], x[3], mask, reverse); }, std::move(zeros)));
  };
  add("three steps", 2, 3, 4, Mask(), false);
  add("reverse", 2, 3, 4, Mask(), true);
  add("padding", 3, 3, 2, Mask::padding({3, 1, 2}), false);
  add("padding, reverse", 3, 3, 2, Mask::padding({2, 3, 1}), true);
  add("one step of one unit", 1, 1, 1, Mask(), false);
  add("size 0, no batch row", 0, 3, 2, Mask(), false, {{"input 2", no_output}, {"input 3", no_output}});
  add("size 0, no step", 2, 0, 2, Mask(), false,
      {{"input 1", no_output}, {"input 2", no_output}, {"input 3", no_output}});
  const std::string behind = "every position is padding";
  add("nothing but padding", 2, 2, 2, Mask::padding({0, 0}), false,
      {{"input 0", behind}, {"input 2", behind}, {"input 3", behind}});
  table.push_back(sample("gru", "no first state, no bias", {{{2, 3, 6}}, {{6, 2}}},
                         [](const Variables& x) { return gru(x[0], {}, x[1], {}, Mask()); }));
  table.push_back(sample("gru", "repeated input", {{{1, 3, 3}}}, [](const Variables& x) {
    return gru(x[0], {}, reshape(slice(x[0], 2, 0, 1), {3, 1}), reshape(slice(x[0], 2, 1, 2), {3}), Mask());
  }));
  table.push_back(long_sample("gru", "long, rows", {{{long_pairs, 2, 3}}, {{long_pairs, 1}}, {{3, 1}}, {{3}}},
                              [](const Variables& x) { return gru(x[0], x[1], x[2], x[3], Mask()); }));
}

void add_attentive_gru(std::vector<Sample>& table) {
  constexpr i64 H = 3, A = 2, M = 4;
  // Both results in one, each with a gradient of its own.
  const auto both = [](const AttentiveGruResult& result) { return concat({result.states, result.contexts * 0.5}, 2); };
  const auto add = [&](const std::string& variant, i64 B, i64 steps, i64 S, const Mask& mask,
                       std::vector<DeclaredZero> zeros = {}) {
    table.push_back(sample(
        "attentive_gru", variant,
        {{{B, steps, 3 * H}},
         {{B, H}},
         {{B, S, A}},
         {{B, S, M}},
         {{3 * H, H}},
         {{3 * H}},
         {{A, H}},
         {{A}},
         {{3 * H, M}}},
        [=](const Variables& x) {
          return both(attentive_gru(x[0], x[1], x[2], x[3], {x[4], x[5], x[6], x[7], x[8]}, mask));
        },
        std::move(zeros)));
  };
  add("three steps", 2, 3, 3, Mask());
  add("padding", 3, 2, 3, Mask::padding({3, 1, 2}));
  const std::string certain = "softmax over one key is always 1", nothing = "no state sees a key";
  add("one key", 2, 2, 1, Mask(), {{"input 2", certain}, {"input 6", certain}, {"input 7", certain}});
  table.push_back(sample(
      "attentive_gru", "nothing to see",
      {{{2, 2, 3 * H}}, {{2, H}}, {{2, 2, A}}, {{2, 2, M}}, {{3 * H, H}}, {{3 * H}}, {{A, H}}, {{A}}, {{3 * H, M}}},
      [](const Variables& x) {
        const AttentiveGruParameters parameters{x[4], x[5], x[6], x[7], x[8]};
        return attentive_gru(x[0], x[1], x[2], x[3], parameters, Mask::padding({0, 0})).states;
      },
      {{"input 2", nothing}, {"input 3", nothing}, {"input 6", nothing}, {"input 7", nothing}, {"input 8", nothing}}));
  add("size 0, no batch row", 0, 2, 3, Mask(),
      {{"input 4", no_output},
       {"input 5", no_output},
       {"input 6", no_output},
       {"input 7", no_output},
       {"input 8", no_output}});
  const std::vector<Input> without_bias{{{2, 2, 3}}, {{2, 1}}, {{2, 3, 2}}, {{2, 3, 2}},
                                        {{3, 1}},    {{2, 1}}, {{2}},       {{3, 2}}};
  table.push_back(sample("attentive_gru", "no bias, states alone", without_bias, [](const Variables& x) {
    return attentive_gru(x[0], x[1], x[2], x[3], {x[4], {}, x[5], x[6], x[7]}, Mask()).states;
  }));
  table.push_back(sample("attentive_gru", "contexts alone", without_bias, [](const Variables& x) {
    return attentive_gru(x[0], x[1], x[2], x[3], {x[4], {}, x[5], x[6], x[7]}, Mask()).contexts;
  }));
  table.push_back(sample("attentive_gru", "keys that are the memory",
                         {{{2, 2, 3}}, {{2, 1}}, {{2, 3, 2}}, {{3, 1}}, {{2, 1}}, {{2}}, {{3, 2}}},
                         [=](const Variables& x) {
                           return both(attentive_gru(x[0], x[1], x[2], x[2], {x[3], {}, x[4], x[5], x[6]}, Mask()));
                         }));
  constexpr i64 rows = long_pairs;
  table.push_back(long_sample(
      "attentive_gru", "long, rows",
      {{{rows, 2, 3}}, {{rows, 1}}, {{rows, 2, 1}}, {{rows, 2, 4}}, {{3, 1}}, {{3}}, {{1, 1}}, {{1}}, {{3, 4}}},
      [=](const Variables& x) {
        return both(attentive_gru(x[0], x[1], x[2], x[3], {x[4], x[5], x[6], x[7], x[8]}, Mask()));
      }));
}

void add_convolution(std::vector<Sample>& table) {
  using enum ConvolutionPadding;
  const auto add = [&](const std::string& variant, const Shape& x, const Shape& W, ConvolutionPadding padding,
                       const Mask& mask, std::vector<DeclaredZero> zeros = {}) {
    table.push_back(sample(
        "convolution", variant, {{x}, {W}, {{W[0]}}},
        [=](const Variables& in) { return convolution(in[0], in[1], in[2], padding, mask); }, std::move(zeros)));
  };
  add("same", {2, 4, 3}, {5, 3, 3}, same, Mask());
  add("same, wider than the sequence", {2, 2, 2}, {3, 2, 5}, same, Mask());
  add("same, padding", {3, 4, 2}, {3, 2, 3}, same, Mask::padding({4, 1, 3}));
  add("causal", {2, 4, 3}, {4, 3, 3}, causal, Mask());
  add("causal, even width, padding", {2, 3, 2}, {3, 2, 2}, causal, Mask::padding({3, 2}));
  add("none", {2, 5, 3}, {4, 3, 3}, none, Mask());
  add("width 1", {2, 3, 3}, {4, 3, 1}, same, Mask());
  add("size 0, no sequence", {0, 3, 2}, {3, 2, 3}, same, Mask(), {{"input 1", no_output}, {"input 2", no_output}});
  add("size 0, no position", {2, 0, 2}, {3, 2, 3}, causal, Mask(), {{"input 1", no_output}, {"input 2", no_output}});
  const std::string unseen = "no output sees an input";
  add("size 0, no output", {2, 2, 2}, {3, 2, 3}, none, Mask(),
      {{"input 0", unseen}, {"input 1", no_output}, {"input 2", no_output}});
  add("nothing but padding", {2, 2, 2}, {3, 2, 3}, same, Mask::padding({0, 0}),
      {{"input 0", unseen}, {"input 1", unseen}});
  table.push_back(sample("convolution", "no bias", {{{2, 3, 2}}, {{2, 2, 3}}},
                         [](const Variables& x) { return convolution(x[0], x[1], {}, causal, Mask()); }));
  table.push_back(sample("convolution", "repeated input", {{{2, 3, 3}}, {{2}}},
                         [](const Variables& x) { return convolution(x[0], x[0], x[1], same, Mask()); }));
  table.push_back(long_sample(
      "convolution", "long, positions", {{{1, long_rows, 2}}, {{3, 2, 3}}, {{3}}},
      [](const Variables& x) { return convolution(x[0], x[1], x[2], same, Mask::padding({long_rows - 3})); }));
  table.push_back(long_sample("convolution", "long, sequences", {{{long_rows, 2, 1}}, {{2, 1, 3}}, {{2}}},
                              [](const Variables& x) { return convolution(x[0], x[1], x[2], causal, Mask()); }));
}

void add_glu(std::vector<Sample>& table) {
  const auto add = [&](const std::string& variant, const Input& x) {
    table.push_back(sample("glu", variant, {x}, [](const Variables& in) { return glu(in[0]); }));
  };
  add("three axes", {{2, 3, 8}});
  add("one axis", {{2}});
  add("tails", {{3, 6}, Range::tails});
  add("size 0", {{0, 4}});
  table.push_back(long_sample("glu", "long", {{{long_rows, 4}}}, [](const Variables& in) { return glu(in[0]); }));
}

}  // namespace

void add_sequences(std::vector<Sample>& table) {
  add_convolution(table);
  add_glu(table);
  add_gru(table);
  add_attentive_gru(table);
}

}  // namespace orrery::sample_rows
