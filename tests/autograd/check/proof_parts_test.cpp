// Chapter 3. Tests of the parts about gradients: each catches its mistakes, which gradients alone do not show.
#include "autograd/check/proof_parts.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/autograd/hidden_mistakes.h"

using namespace orrery;

namespace {

Sample squared_by(const hidden::Square::Rule& rule) {
  return sample_of("square", [rule](const Variable& x) { return apply(hidden::Square{rule}, x); }, {{3, 4}});
}
Sample multiplied_by(const hidden::Product::Rule& rule) {
  return sample_of("product",
                   [rule](const Variable& a, const Variable& b) { return apply(hidden::Product{rule}, a, b); },
                   {{3, 4}, {3, 4}});
}

// The numeric check alone passes: that is what makes the mistake a hidden one.
bool is_hidden(const Sample& sample) { return static_cast<bool>(gradcheck(sample.build(f64), sample.options)); }

}  // namespace

TEST_CASE("promise 7: accumulates: what is in a gradient already is added to, once") {
  using Write = std::function<void(const GradientBuffer&, const Tensor& g)>;
  const auto verdict = [](const Write& write) {
    const Sample sample = squared_by([write](const Tensor&, const Tensor&, const Tensor& g, Grads& dx) {
      const GradientBuffer into = dx.into(0);
      if (into.is_new)
        copy_into(into.buffer, g);
      else
        write(into, g);
    });
    CHECK(is_hidden(sample));
    return parts::prove_accumulates(sample, 1);
  };
  CHECK(verdict([](const GradientBuffer& to, const Tensor& g) { add_in_place(to.buffer, g); }).ok);
  const std::vector<Write> wrong{
      [](const GradientBuffer& to, const Tensor& g) { copy_into(to.buffer, g); },
      [](const GradientBuffer& to, const Tensor& g) { add_in_place(to.buffer, g * 2.0); },
      [](const GradientBuffer& to, const Tensor& g) { add_in_place(to.buffer, g * -1.0); },
      [](const GradientBuffer&, const Tensor&) {},
      [](const GradientBuffer& to, const Tensor& g) {
        scale_in_place(to.buffer, 0.5);
        add_in_place(to.buffer, g);
      },
      [](const GradientBuffer& to, const Tensor& g) {
        Tensor row = to.buffer.rows(0, 1);
        add_in_place(row, g.rows(0, 1));
      },
  };
  for (const Write& write : wrong)
    CHECK(verdict(write).detail == "with a gradient there already: the gradient of input 0 is not the sum");
}

TEST_CASE("promise 7: subsets: each choice of inputs gives the gradients that all together give") {
  const auto verdict = [](const hidden::Product::Rule& rule) {
    CHECK(is_hidden(multiplied_by(rule)));
    return parts::prove_subsets(multiplied_by(rule), 1);
  };
  CHECK(verdict([](const Tensor& da, const Tensor& db, Grads& dx) {
          dx.add(0, da);
          dx.add(1, db);
        }).ok);
  CHECK(verdict([](const Tensor& da, const Tensor& db, Grads& dx) {
          dx.add(0, dx.wanted(1) ? da : db);
          dx.add(1, db);
        }).detail == "another gradient for input 0 when gradients are wanted for input 0 alone");
  CHECK_FALSE(verdict([](const Tensor& da, const Tensor& db, Grads& dx) {
                if (dx.wanted(0)) {
                  dx.add(0, da);
                  dx.add(1, db);
                }
              }).ok);
  CHECK_FALSE(verdict([](const Tensor& da, const Tensor& db, Grads& dx) {
                dx.add(0, da);
                dx.add(1, dx.wanted(0) ? db : db * 1.0001);
              }).ok);
  CHECK_THROWS_WITH(verdict([](const Tensor& da, const Tensor& db, Grads& dx) {
                      copy_into(dx.into(0).buffer, da);
                      copy_into(dx.into(1).buffer, db);
                    }),
                    doctest::Contains("asks for the gradient of input"));
}

TEST_CASE("promise 7: subsets: of many leaves each alone, and all but each") {
  const Sample sample = sample_of("sum",
                                  [](const std::vector<Variable>& x) {
                                    Variable total = x[0];
                                    for (size_t i = 1; i < x.size(); ++i) total = total * x[i];
                                    return total;
                                  },
                                  {{2}, {2}, {2}, {2}, {2}, {2}});
  CHECK(parts::prove_subsets(sample, 1).detail == "12 choices of inputs, the same");
  CHECK(parts::prove_subsets(squared_by([](const Tensor&, const Tensor&, const Tensor& g, Grads& dx) { dx.add(0, g); }),
                             1)
            .detail == "one input: nothing to choose");
}

TEST_CASE("promise 7: shared: dy stays as it is, and so do inputs and outputs") {
  const auto verdict = [](const hidden::Square::Rule& rule) { return parts::prove_shared(squared_by(rule), 1); };
  CHECK(verdict([](const Tensor&, const Tensor&, const Tensor& g, Grads& dx) { dx.add(0, g); }).ok);
  const std::string writes = "square writes into dy, which others may share";
  CHECK(verdict([](const Tensor&, const Tensor& dy, const Tensor& g, Grads& dx) {
          Tensor d = dy;
          copy_into(d, g);
          dx.add(0, d.clone());
        }).detail == writes);
  CHECK(verdict([](const Tensor&, const Tensor& dy, const Tensor& g, Grads& dx) {
          dx.add(0, g);
          Tensor d = dy;
          fill(d, 0);
        }).detail == writes);
  CHECK(verdict([](const Tensor& x, const Tensor&, const Tensor& g, Grads& dx) {
          dx.add(0, g);
          Tensor in = x;
          scale_in_place(in, 2);
        }).detail == "a pass writes into input 0");
}

TEST_CASE("a tape cut back to some leaves has only the edges that lead to them") {
  const Variable a = parameter(full({2}, 2.0)), b = parameter(full({2}, 3.0));
  const Variable y = (a * a) * exp(b);
  parts::keep_only(y, {a.node().get()});
  backward(sum(y));
  CHECK(a.gradient().defined());
  CHECK_FALSE(b.gradient().defined());
}

TEST_CASE("a leaf that is listed twice is one leaf") {
  Sample sample = squared_by([](const Tensor&, const Tensor&, const Tensor& g, Grads& dx) { dx.add(0, g); });
  sample.make = [make = sample.make](Dtype dtype, u64 seed) {
    Checkable f = make(dtype, seed);
    f.leaves.push_back(f.leaves[0]);
    return f;
  };
  CHECK(parts::built(sample, f64, 1).leaves.size() == 1);
  CHECK(parts::prove_accumulates(sample, 1).ok);
}
