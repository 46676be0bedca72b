// Chapter 8. The gated recurrent unit against its formulas, written with the operations of chapters 3 and 4.
#include "core/machine/memory.h"
#include "core/mask.h"
#include "tests/autograd/ops/fused.h"
#include "tests/autograd/ops/textbook_gru.h"

using namespace orrery;
using namespace orrery::small;

namespace {

struct GruSizes {
  i64 B, steps, H;
  std::vector<Shape> shapes() const { return {{B, steps, 3 * H}, {B, H}, {3 * H, H}, {3 * H}}; }
};

}  // namespace

TEST_CASE("the unit in both directions, with and without padding, equals its formulas") {
  for (const GruSizes& s : {GruSizes{1, 1, 1}, {2, 3, 4}, {3, 5, 7}, {20, 4, 33}}) {
    std::vector<i32> some;
    for (i64 b = 0; b < s.B; ++b) some.push_back(static_cast<i32>(1 + b % s.steps));
    for (const bool padded : {false, true}) {
      const Mask mask = padded ? Mask::padding(some) : Mask();
      for (const bool reverse : {false, true}) {
        INFO(s.B, " ", s.steps, " ", s.H, " ", padded, " ", reverse);
        check_fused([=](const Variables& x) { return gru(x[0], x[1], x[2], x[3], mask, reverse); },
                    [=](const Variables& x) { return textbook_gru(x[0], x[1], x[2], x[3], mask, reverse); },
                    normals(s.shapes()));
      }
    }
  }
}

TEST_CASE("without a first state it starts at 0, and the bias may be missing") {
  const auto zero = [](const Variable& gates, i64 H) { return constant(zeros({gates.size(0), H}, gates.dtype())); };
  check_fused([](const Variables& x) { return gru(x[0], {}, x[1], {}, Mask()); },
              [=](const Variables& x) { return textbook_gru(x[0], zero(x[0], 4), x[1], {}, Mask(), false); },
              normals({{2, 3, 12}, {12, 4}}));
}

TEST_CASE("a state beyond the padding length is the last one, and NaN there reaches nothing") {
  const std::vector<Tensor> inputs = normals({{2, 4, 6}, {2, 2}, {6, 2}, {6}});
  Tensor gates = inputs[0].clone();
  for (const i64 t : {2, 3}) gates.write<double>()[(1 * 4 + t) * 6 + 1] = std::nan("");
  for (const bool reverse : {false, true}) {
    const std::vector<Variable> x{parameter(gates.clone()), parameter(inputs[1].clone()), parameter(inputs[2].clone()),
                                  parameter(inputs[3].clone())};
    const Variable y = gru(x[0], x[1], x[2], x[3], Mask::padding({4, 2}), reverse);
    for (const i64 t : {2, 3}) {
      for (i64 i = 0; i < 2; ++i) CHECK(y.value()(1, t, i) == (reverse ? inputs[1](1, i) : y.value()(1, 1, i)));
    }
    backward(y, normal(y.shape(), 3));
    for (const Variable& input : x) CHECK(std::isfinite(sum_of_squares(input.gradient())));
    CHECK(sum_of_squares(slice(x[0].gradient().rows(1, 2), 1, 2)) == 0);
  }
}

TEST_CASE("a unit that is not recorded has the same bits, and keeps one step") {
  const i64 B = 32, steps = 40, H = 64;
  const std::vector<Tensor> inputs = normals(GruSizes{B, steps, H}.shapes(), f32);
  const auto run = [&](const auto& make) {
    reset_peak();
    const i64 before = memory_counters().live_bytes;
    const Variable y = gru(make(inputs[0]), make(inputs[1]), make(inputs[2]), make(inputs[3]), Mask());
    const i64 peak = memory_counters().peak_bytes;
    return std::pair(y.value().clone(), peak - before);
  };
  const auto recorded = run([](const Tensor& t) { return parameter(t); });
  const auto free = run([](const Tensor& t) { return constant(t); });
  CHECK(same_bits(recorded.first, free.first));
  if (counts_memory()) {
    CHECK(recorded.second >= 5 * B * steps * H * 4);
    CHECK(free.second <= B * steps * H * 4 + 8 * B * H * 4);
  }
}

TEST_CASE("bits do not depend on the number of threads") {
  CHECK(thread_proof(
      [](const Variables& x) {
        return gru(x[0], x[1], x[2], x[3], Mask::padding({3, 2, 3}), true);
      },
      GruSizes{3, 3, 600}.shapes()));
}

TEST_CASE("shapes that do not fit are errors that say what is needed") {
  const auto run = [](const std::vector<Shape>& shapes, const Mask& mask = {}) {
    const std::vector<Tensor> t = normals(shapes);
    return error_of([&] { gru(constant(t[0]), constant(t[1]), constant(t[2]), constant(t[3]), mask); });
  };
  const auto starts = [](const std::string& text, const std::string& start) { return text.substr(0, start.size()); };
  const auto check_error = [&](const std::string& error, const std::string& start) {
    CHECK(starts(error, start) == start);
  };
  check_error(run({{2, 3, 7}, {2, 2}, {6, 2}, {6}}), "gru: the gates need 3 H columns, have 7");
  check_error(run({{2, 3, 6}, {1, 2}, {6, 2}, {6}}), "gru: the first state needs shape [2, 2], has [1, 2]");
  check_error(run({{2, 3, 6}, {2, 2}, {2, 6}, {6}}), "gru: the weight needs shape [6, 2], has [2, 6]");
  check_error(run({{2, 3, 6}, {2, 2}, {6, 2}, {2}}), "gru: the bias needs shape [6], has [2]");
  check_error(run({{2, 3, 6}, {2, 2}, {6, 2}, {6}}, Mask::padding({3})),
              "gru: has lengths for 1 batch rows, there are 2");
}
