// Chapter 3. Tests of the parts about gradients and about passes: each catches its mistakes, which gradients alone do
// not show.
#include "autograd/check/proof_parts.h"

#include <doctest/doctest.h>

#include "autograd/check/rounding.h"
#include "autograd/ops.h"
#include "core/mask.h"
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

namespace {

// x^2, correct except for what `wrong` does to g.
Sample almost_square(const std::function<Tensor(const Tensor& x, const Tensor& g)>& wrong) {
  const hidden::Square::Rule rule = [wrong](const Tensor& x, const Tensor&, const Tensor& g, Grads& dx) {
    dx.add(0, wrong(x, g));
  };
  return sample_of("square", [rule](const Variable& x) { return apply(hidden::Square{rule}, x); }, {{3, 4}});
}

template <class Operation> Sample of_operation(const Operation& operation) {
  return sample_of("operation", [operation](const Variable& x) { return tanh(apply(operation, tanh(x))); }, {{3, 4}});
}

}  // namespace

TEST_CASE("promise 7: far: numbers beyond those that N(0, 1) draws") {
  const auto verdict = [](const std::function<bool(double)>& wrong) {
    const Sample sample =
        almost_square([wrong](const Tensor& x, const Tensor& g) { return hidden::doubled_where(x, g, wrong); });
    CHECK(gradcheck(sample.build(f64), sample.options));
    return parts::prove_far(sample, 1);
  };
  CHECK(verdict([](double) { return false; }).ok);
  CHECK(verdict([](double x) { return std::fabs(x) > 4; }).detail.starts_with("with inputs 4 times as large:\n"));
  CHECK_FALSE(verdict([](double x) { return x > 5; }).ok);
  CHECK_FALSE(verdict([](double x) { return x < -3.5; }).ok);
  const Sample in_f32 = almost_square([](const Tensor& x, const Tensor& g) {
    return hidden::doubled_where(x, g, [&](double v) { return x.dtype() == f32 && std::fabs(v) > 5; });
  });
  CHECK(compare_precisions(in_f32, 1).problem == "");
  CHECK(parts::prove_far(in_f32, 1).detail.starts_with("with inputs 4 times as large, in f32:\ninput 0 is off by "));
  const Sample growing{
      "growing",
      "",
      [](Dtype dtype, u64) { return checkable([](const Variable& x) { return exp(x); }, {full({1}, 24.0, dtype)}); },
      {}};
  CHECK(parts::prove_far(growing, 1).detail ==
        "inputs 4 times as large in f64 alone, and 8 times as large in f64 alone");
  const Sample steep = sample_of("steep", [](const Variable& x) { return exp(exp(exp(x * x))); }, {{3, 4}});
  CHECK(parts::prove_far(steep, 1).detail == "not tried: no finite value there");
}

TEST_CASE("promise 7: interleaved: what a forward keeps is its own") {
  for (const bool first : {true, false}) {
    const Sample sample = of_operation(hidden::Remembering{std::make_shared<hidden::Remembering::Memory>(), first});
    CHECK(gradcheck(sample.build(f64), sample.options));
    const ProofPart part = parts::prove_interleaved(sample, 1);
    CHECK_FALSE(part.ok);
    CHECK(part.detail.starts_with(first ? "with other numbers" : "two forward passes before backward"));
  }
}

TEST_CASE("promise 7: changed: a Tensor where a Saved belongs") {
  const ProofPart input = parts::prove_changed(of_operation(hidden::BareInput{}), 1);
  CHECK(input.detail ==
        "what tanh returned was changed in place after forward: bare_input gives another gradient, and "
        "no error");
  CHECK(input.text() == input.detail + ": a Tensor where a Saved belongs?");
  CHECK(parts::prove_changed(of_operation(hidden::BareOutput{}), 1).detail.starts_with("what bare_output returned"));
  const ProofPart right = parts::prove_changed(almost_square([](const Tensor&, const Tensor& g) { return g; }), 1);
  CHECK(right.ok);
  CHECK(right.detail == "4 changes in place: 2 errors, else the same bits");
}

TEST_CASE(
    "promise 7: changed: a backward that runs operations of its own, whose outputs are no more values of the pass") {
  const ProofPart part = parts::prove_changed(almost_square([](const Tensor&, const Tensor& g) {
                                                for (int i = 0; i < 100; ++i) exp(constant(g));
                                                return g;
                                              }),
                                              1);
  CHECK(part.ok);
  CHECK(part.detail == "4 changes in place: 2 errors, else the same bits");
}

TEST_CASE("promise 7: repeatable and threads: every 50th pass, exactly 4 threads, more than 8") {
  const auto calls = std::make_shared<int>(0);
  const Sample fiftieth =
      almost_square([calls](const Tensor&, const Tensor& g) { return ++*calls % 50 == 0 ? g * 1.001 : g; });
  CHECK(parts::prove_repeatable(fiftieth, 1).detail == "pass 50 gives other bits for input 0");
  const auto with_threads = [](const std::function<bool(int)>& wrong) {
    const parts::KeepThreads keep;
    return parts::prove_threads(
        almost_square([wrong](const Tensor&, const Tensor& g) { return wrong(threads()) ? g * 1.001 : g; }), 1);
  };
  CHECK(with_threads([](int) { return false; }).ok);
  CHECK(with_threads([](int n) { return n == 4; }).detail == "4 threads give other bits for input 0");
  CHECK(with_threads([](int n) { return n > 8; }).detail == "9 threads give other bits for input 0");
  CHECK(with_threads([](int n) { return n > 12; }).detail == "13 threads give other bits for input 0");
}

TEST_CASE("promise 13: padding: what stands behind a length must reach neither the output nor a gradient") {
  // f(x, w) for x [2, 3, 4], of whose second row only the first two positions are real.
  const auto part_of = [](const std::function<Variable(const Variable& x, const Variable& w)>& f,
                          std::vector<i32> output) {
    return parts::prove_padding(
        {.name = "rows",
         .variant = "",
         .make =
             [=](Dtype dtype, u64 seed) {
               Rng rng(seed);
               Checkable result = checkable(f, {randn({2, 3, 4}, rng, dtype), randn({4}, rng, dtype)});
               result.padding = {.places = {{"input 0", {3, 2}}}, .output = output};
               return result;
             }},
        1);
  };
  const Mask mask = Mask::padding(std::vector<i32>{3, 2});
  const auto cleared = [=](const Variable& x) {
    return reshape(zero_padding(reshape(x, {2, 1, 3, 4}), mask), {2, 3, 4});
  };
  CHECK(part_of([=](const Variable& x, const Variable& w) { return cleared(x) * w; }, {}).ok);
  CHECK(part_of([=](const Variable& x, const Variable& w) { return cleared(x) * w; }, {3, 2}).ok);
  // The real rows of x + w are right, and so is every gradient. Those of x w are right, but dw adds up 0 times NaN.
  CHECK(part_of([](const Variable& x, const Variable& w) { return x + w; }, {3, 2}).ok);
  CHECK(part_of([](const Variable& x, const Variable& w) { return x * w; }, {3, 2}).detail ==
        "nan behind the padding lengths gives other bits for input 1");
  // 0 times a sum of squares is 0 unless they overflow.
  const auto norm = [](const Variable& x) { return x * x; };
  CHECK(part_of([=](const Variable& x, const Variable& w) { return cleared(norm(x)) * w; }, {}).detail ==
        "nan behind the padding lengths gives other bits for input 0");
  CHECK(part_of([](const Variable& x, const Variable& w) { return x + w; }, {}).detail ==
        "the padding of input 0 has a gradient");
}
