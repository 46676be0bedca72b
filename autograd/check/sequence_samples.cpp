// Chapter 8. The samples of convolution and the gated linear unit: with padding, without optional inputs.
#include "autograd/check/sample_rows.h"
#include "autograd/ops.h"
#include "core/mask.h"

namespace orrery::sample_rows {
namespace {

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
  for (const auto& [variant, shape] : {std::pair{"long", Shape{long_rows, 4}}, {"many columns", {41, 514}}})
    table.add_long("glu", variant, {{shape}}, [](In in) { return glu(in[0]); });
}

}  // namespace

void add_sequences(SampleTable& table) {
  add_convolution(table);
  add_glu(table);
}

}  // namespace orrery::sample_rows
