// Chapter 8. The samples of recurrence, convolution and the gated linear unit: with padding, without optional inputs.
#include "autograd/check/sample_rows.h"
#include "autograd/ops.h"
#include "core/mask.h"

namespace orrery::sample_rows {
namespace {

// Sequences of two positions, so that there are more positions than a chunk of a loop has elements.
constexpr int long_pairs = long_rows / 2;

void add_gru(SampleTable& table) {
  const auto add = [&](const std::string& variant, i64 B, i64 steps, i64 H, const Mask& mask, bool reverse,
                       std::vector<DeclaredZero> zeros = {}) {
    table.add("gru", variant, {{{B, steps, 3 * H}}, {{B, H}}, {{3 * H, H}}, {{3 * H}}}, zeros,
              [=](In x) { return gru(x[0], x[1], x[2], x[3], mask, reverse); });
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
  table.add("gru", "no first state, no bias", {{{2, 3, 6}}, {{6, 2}}},
            [](In x) { return gru(x[0], {}, x[1], {}, Mask()); });
  table.add("gru", "repeated input", {{{1, 3, 3}}}, [](In x) {
    return gru(x[0], {}, reshape(slice(x[0], 2, 0, 1), {3, 1}), reshape(slice(x[0], 2, 1, 2), {3}), Mask());
  });
  table.add_long("gru", "long, rows", {{{long_pairs, 2, 3}}, {{long_pairs, 1}}, {{3, 1}}, {{3}}},
                 [](In x) { return gru(x[0], x[1], x[2], x[3], Mask()); });
}

// The sizes of a state, of a key and of an entry of the memory.
struct AttentiveSizes {
  i64 H = 3, A = 2, M = 4;
};
std::vector<Input> attentive_inputs(i64 B, i64 steps, i64 S, AttentiveSizes n = {}) {
  return {
      {{B, steps, 3 * n.H}},  // gates
      {{B, n.H}},             // s0
      {{B, S, n.A}},          // keys
      {{B, S, n.M}},          // memory
      {{3 * n.H, n.H}},       // W
      {{3 * n.H}},            // b
      {{n.A, n.H}},           // W_query
      {{n.A}},                // v
      {{3 * n.H, n.M}},       // W_context
  };
}
AttentiveGruResult run_attentive_gru(In x, const Mask& mask) {
  return attentive_gru(x[0], x[1], x[2], x[3], {x[4], x[5], x[6], x[7], x[8]}, mask);
}
// Both results in one, each with a gradient of its own.
Variable both(const AttentiveGruResult& result) { return concat({result.states, result.contexts * 0.5}, 2); }

void add_attentive_gru(SampleTable& table) {
  const auto add = [&](const std::string& variant, i64 B, i64 steps, i64 S, const Mask& mask,
                       std::vector<DeclaredZero> zeros = {}) {
    table.add("attentive_gru", variant, attentive_inputs(B, steps, S), zeros,
              [=](In x) { return both(run_attentive_gru(x, mask)); });
  };
  add("three steps", 2, 3, 3, Mask());
  add("padding", 3, 2, 3, Mask::padding({3, 1, 2}));
  const std::string certain = "softmax over one key is always 1", nothing = "no state sees a key";
  add("one key", 2, 2, 1, Mask(), {{"input 2", certain}, {"input 6", certain}, {"input 7", certain}});
  table.add(
      "attentive_gru", "nothing to see", attentive_inputs(2, 2, 2),
      {{"input 2", nothing}, {"input 3", nothing}, {"input 6", nothing}, {"input 7", nothing}, {"input 8", nothing}},
      [](In x) {
        return run_attentive_gru(x, Mask::padding({0, 0})).states;
      });
  add("size 0, no batch row", 0, 2, 3, Mask(),
      {{"input 4", no_output},
       {"input 5", no_output},
       {"input 6", no_output},
       {"input 7", no_output},
       {"input 8", no_output}});
  table.add_long("attentive_gru", "long, rows", attentive_inputs(long_pairs, 2, 2, {.H = 1, .A = 1, .M = 4}),
                 [](In x) { return both(run_attentive_gru(x, Mask())); });
}

void add_attentive_gru_without_bias(SampleTable& table) {
  std::vector<Input> inputs = attentive_inputs(2, 2, 3, {.H = 1, .A = 2, .M = 2});
  inputs.erase(inputs.begin() + 5);  // b
  const auto run = [](In x) { return attentive_gru(x[0], x[1], x[2], x[3], {x[4], {}, x[5], x[6], x[7]}, Mask()); };
  table.add("attentive_gru", "no bias, states alone", inputs, [=](In x) { return run(x).states; });
  table.add("attentive_gru", "contexts alone", inputs, [=](In x) { return run(x).contexts; });
  inputs.erase(inputs.begin() + 3);  // the memory
  table.add("attentive_gru", "keys that are the memory", inputs, [](In x) {
    return both(attentive_gru(x[0], x[1], x[2], x[2], {x[3], {}, x[4], x[5], x[6]}, Mask()));
  });
}

void add_convolution(SampleTable& table) {
  using enum ConvolutionPadding;
  const auto add = [&](const std::string& variant, const Shape& x, const Shape& W, ConvolutionPadding padding,
                       const Mask& mask, std::vector<DeclaredZero> zeros = {}) {
    table.add("convolution", variant, {{x}, {W}, {{W[0]}}}, zeros,
              [=](In in) { return convolution(in[0], in[1], in[2], padding, mask); });
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
  table.add("convolution", "no bias", {{{2, 3, 2}}, {{2, 2, 3}}},
            [](In x) { return convolution(x[0], x[1], {}, causal, Mask()); });
  table.add("convolution", "repeated input", {{{2, 3, 3}}, {{2}}},
            [](In x) { return convolution(x[0], x[0], x[1], same, Mask()); });
  table.add_long("convolution", "long, positions", {{{1, long_rows, 2}}, {{3, 2, 3}}, {{3}}},
                 [](In x) { return convolution(x[0], x[1], x[2], same, Mask::padding({long_rows - 3})); });
  table.add_long("convolution", "long, sequences", {{{long_rows, 2, 1}}, {{2, 1, 3}}, {{2}}},
                 [](In x) { return convolution(x[0], x[1], x[2], causal, Mask()); });
}

void add_glu(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Input& x) {
    table.add("glu", variant, {x}, [](In in) { return glu(in[0]); });
  };
  add("three axes", {{2, 3, 8}});
  add("one axis", {{2}});
  add("tails", {{3, 6}, Range::tails});
  add("size 0", {{0, 4}});
  table.add_long("glu", "long", {{{long_rows, 4}}}, [](In in) { return glu(in[0]); });
}

}  // namespace

void add_sequences(SampleTable& table) {
  add_convolution(table);
  add_glu(table);
  add_gru(table);
  add_attentive_gru(table);
  add_attentive_gru_without_bias(table);
}

}  // namespace orrery::sample_rows
