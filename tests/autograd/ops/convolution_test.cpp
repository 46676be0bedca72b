// Chapter 8. Convolution against a sum of shifted products, and in chunks of sequences.
#include "core/machine/memory.h"
#include "core/mask.h"
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

namespace {

using enum ConvolutionPadding;

// y_t = b + sum_j W_j x_{t + j - left}, with zeros written around x.
Variable textbook_convolution(const Variables& in, ConvolutionPadding padding, const Mask& mask) {
  const Variable &x = in[0], &W = in[1];
  const i64 B = x.size(0), steps = x.size(1), C = x.size(2), width = W.size(2);
  const i64 left = padding == same ? width / 2 : padding == causal ? width - 1 : 0;
  const i64 right = padding == same ? width / 2 : 0;
  const Variable real = reshape(zero_padding(reshape(x, {B, 1, steps, C}), mask), {B, steps, C});
  const Variable around =
      concat({constant(zeros({B, left, C}, x.dtype())), real, constant(zeros({B, right, C}, x.dtype()))}, 1);
  const i64 outputs = around.size(1) - (width - 1);
  Variable y;
  for (i64 j = 0; j < width; ++j) {
    const Variable W_j = reshape(slice(W, 2, j, j + 1), {W.size(0), C});
    const Variable part = linear(slice(around, 1, j, j + outputs), W_j, j == 0 && in.size() > 2 ? in[2] : Variable());
    y = y.defined() ? y + part : part;
  }
  return y;
}

Variable ours(const Variables& in, ConvolutionPadding padding, const Mask& mask) {
  return convolution(in[0], in[1], in.size() > 2 ? in[2] : Variable(), padding, mask);
}

}  // namespace

TEST_CASE("convolution is a sum of shifted products, with each kind of padding") {
  struct Sizes {
    i64 B, steps, C_in, C_out, width;
  };
  for (const Sizes& s :
       {Sizes{1, 1, 1, 1, 1}, {2, 4, 3, 5, 3}, {3, 2, 2, 4, 5}, {2, 9, 17, 8, 7}, {40, 11, 8, 18, 3}}) {
    std::vector<i32> some;
    for (i64 b = 0; b < s.B; ++b) some.push_back(static_cast<i32>(b % (s.steps + 1)));
    for (const ConvolutionPadding padding : {same, causal, none}) {
      if (padding == none && s.steps < s.width) continue;
      for (const Mask& mask : {Mask(), Mask::padding(some)}) {
        for (const bool bias : {true, false}) {
          INFO(s.B, " ", s.steps, " ", s.C_in, " ", s.width, " ", static_cast<int>(padding), " ", mask, " ", bias);
          std::vector<Shape> shapes{{s.B, s.steps, s.C_in}, {s.C_out, s.C_in, s.width}, {s.C_out}};
          if (!bias) shapes.pop_back();
          check_fused([=](const Variables& x) { return ours(x, padding, mask); },
                      [=](const Variables& x) { return textbook_convolution(x, padding, mask); }, normals(shapes));
        }
      }
    }
  }
}

TEST_CASE("many sequences go by in chunks, with the numbers of all at once") {
  // Unfolded, a sequence has 100 x 512 x 3 numbers of 4 bytes: 16 of them fit.
  const std::vector<Tensor> inputs = normals({{20, 100, 512}, {2, 512, 3}, {2}}, f32);
  const auto run = [&] {
    return value_then_gradients([](const Variables& x) { return ours(x, same, Mask()); }, inputs);
  };
  reset_peak();
  const i64 before = memory_counters().live_bytes;
  const std::vector<Tensor> all = run();
  if (counts_memory()) CHECK(memory_counters().peak_bytes - before < 10'000'000 + 4 * inputs[0].bytes());
  for (i64 b = 0; b < 20; ++b) {
    const Tensor alone =
        ours({constant(inputs[0].rows(b, b + 1)), constant(inputs[1]), constant(inputs[2])}, same, {}).value();
    CHECK(small::distance({alone}, {all[0].rows(b, b + 1)}) <= 1e-5);
  }
  const std::vector<Tensor> expected = value_then_gradients(
      [](const Variables& x) { return textbook_convolution(x, same, Mask()); }, converted(inputs, f64));
  for (size_t i = 0; i < all.size(); ++i) CHECK(small::distance({all[i]}, {expected[i]}) <= 1e-5);
}

TEST_CASE("shapes that do not fit are errors that say what is needed") {
  const auto error_with = [](const Shape& x, const Shape& W, const Shape& b, ConvolutionPadding padding) {
    const std::string error = error_of([&] {
      ours({constant(zeros(x)), constant(zeros(W)), constant(zeros(b))}, padding, {});
    });
    return error.substr(0, error.find('\n'));
  };
  CHECK(error_with({2, 4, 3}, {5, 4, 3}, {5}, same) ==
        "convolution: the weight needs shape [C_out, 3, width], has [5, 4, 3]");
  CHECK(error_with({2, 4, 3}, {5, 3, 2}, {5}, same) ==
        "convolution: as many inputs before a position as after it need an odd width, not 2");
  CHECK(error_with({2, 4, 3}, {5, 3, 3}, {4}, causal) == "convolution: the bias needs shape [5], has [4]");
  CHECK(error_with({2, 4, 3}, {5, 3, 7}, {5}, none) ==
        "convolution: without padding, at least 6 positions are needed, there are 4");
}
