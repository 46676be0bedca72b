// Chapter 8. The fused residual connection against sum, dropout and layer norm one after another.
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

namespace {

constexpr Draw residual_draw{.seed = 3, .step = 7, .micro = 1, .index = 4};

constexpr LayerNormForm norm_forms[] = {LayerNormForm::root_of_variance_plus_eps, LayerNormForm::std_plus_eps,
                                        LayerNormForm::unbiased_std_plus_eps};

// Rows of one element, of an odd number, of whole blocks of dropout's decisions, of several pieces; and several strips
// of rows.
const std::vector<Shape>& residual_shapes() {
  static const std::vector<Shape> all{{1}, {3, 1}, {2, 3, 13}, {5, 16}, {3, 1030}, {703, 24}, {41, 7, 29}};
  return all;
}

}  // namespace

TEST_CASE("residual equals x + dropout(f): the same elements are dropped") {
  for (const Shape& shape : residual_shapes()) {
    for (const double p : {0.0, 0.3, 1.0}) {
      INFO(shape, " ", p);
      check_fused([p](const Variables& x) { return residual(x[0], x[1], p, residual_draw); },
                  [p](const Variables& x) { return x[0] + dropout(x[1], p, residual_draw); }, normals({shape, shape}));
    }
  }
}

TEST_CASE("residual_norm equals layer_norm(x + dropout(f)) in all three forms") {
  for (const LayerNormForm form : norm_forms) {
    for (const Shape& shape : residual_shapes()) {
      if (shape[-1] == 1) continue;
      for (const double p : {0.0, 0.3}) {
        INFO(static_cast<int>(form), " ", shape, " ", p);
        check_fused(
            [=](const Variables& x) {
              return residual_norm(x[0], x[1], x[2], x[3], {.eps = 1e-3, .form = form, .p = p, .draw = residual_draw});
            },
            [=](const Variables& x) {
              return layer_norm(x[0] + dropout(x[1], p, residual_draw), x[2], x[3], 1e-3, form);
            },
            normals({shape, shape, {shape[-1]}, {shape[-1]}}));
      }
    }
  }
}

TEST_CASE("residual_norm without weight, bias or both equals the composed form") {
  const auto check = [](bool weight, bool bias) {
    const auto of = [=](const Variables& x) {
      return std::pair(weight ? x[2] : Variable(), bias ? x[weight ? 3 : 2] : Variable());
    };
    std::vector<Shape> inputs{{5, 13}, {5, 13}};
    for (int i = weight + bias; i > 0; --i) inputs.push_back({13});
    constexpr LayerNormForm form = LayerNormForm::root_of_variance_plus_eps;
    check_fused(
        [=](const Variables& x) {
          return residual_norm(x[0], x[1], of(x).first, of(x).second, {.form = form, .p = 0.3, .draw = residual_draw});
        },
        [=](const Variables& x) {
          return layer_norm(x[0] + dropout(x[1], 0.3, residual_draw), of(x).first, of(x).second, 1e-5, form);
        },
        normals(inputs));
  };
  check(false, false);
  check(true, false);
  check(false, true);
  check(true, true);
}

TEST_CASE("residuals of no rows are empty; errors name the operation and the rule") {
  CHECK(residual(constant(zeros({0, 3})), constant(zeros({0, 3})), 0.5, residual_draw).shape() == Shape{0, 3});
  const Variable x = constant(zeros({2, 3})), other = constant(zeros({3})), scalar = constant(zeros({}));
  CHECK(
      error_of([&] { (void)residual(x, other); }).starts_with("residual: shapes differ ([2, 3] and [3])\n  input 0:"));
  CHECK(contains(error_of([&] { (void)residual(scalar, scalar); }), "residual: needs at least one axis"));
  CHECK(contains(error_of([&] { (void)residual(x, x, -0.1); }), "residual: needs a probability in [0, 1], got -0.1"));
  CHECK(contains(error_of([&] { (void)residual_norm(x, other, {}, {}); }), "residual_norm: shapes differ"));
  CHECK(contains(error_of([&] { (void)residual_norm(x, x, x, {}); }), "weight and bias need shape [3], got [2, 3]"));
  const Variable one = constant(zeros({2, 1}));
  CHECK(contains(error_of([&] { (void)residual_norm(one, one, {}, {}, {.form = norm_forms[2]}); }),
                 "residual_norm: the unbiased form needs rows of at least 2"));
  CHECK(contains(error_of([&] { (void)residual_norm(x, x, {}, {}, {.p = std::nan("")}); }),
                 "residual_norm: needs a probability in [0, 1]"));
}
