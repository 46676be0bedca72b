// Chapter 3. Tests of the proof: a right operation passes every part, and each part fails for a mistake of its own
// kind.
#include "autograd/check/proof.h"

#include <doctest/doctest.h>
#include <omp.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/kernels/elementwise.h"
#include "core/machine/parallel.h"
#include "tests/autograd/hidden_mistakes.h"

using namespace orrery;

namespace {

const ProofPart& part(const Proof& proof, const std::string& name) {
  for (const ProofPart& p : proof.parts)
    if (p.name == name) return p;
  FAIL("no part " << name);
  return proof.parts.front();
}

// The sum of x, added up by each thread separately and then over the threads: its bits depend on their number.
struct SumByThread {
  static constexpr std::string_view name = "sum_by_thread";
  Shape shape;
  Tensor forward(const Tensor& x) {
    shape = x.shape();
    double of_thread[16] = {};
    parallel_for(x.count(), elementwise_grain, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) of_thread[omp_get_thread_num()] += x.at(i);
    });
    double total = 0;
    for (const double part : of_thread) total += part;
    return full({}, total, x.dtype());
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, full(shape, dy.item(), dy.dtype())); }
};

// x, and in f32 a little more.
struct Shifted {
  static constexpr std::string_view name = "shifted";
  Tensor forward(const Tensor& x) { return x.dtype() == f32 ? x + full({}, 1e-4) : x * 1.0; }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy); }
};

// Proves x^2, with what a test wants to be wrong about its gradient.
Proof prove_square(const std::function<Tensor(const Tensor& g)>& wrong) {
  const hidden::Square::Rule rule = [wrong](const Tensor&, const Tensor&, const Tensor& g, Grads& dx) {
    dx.add(0, wrong(g));
  };
  return prove("square", [rule](const Variable& x) { return apply(hidden::Square{rule}, x); }, {{3, 4}});
}

}  // namespace

TEST_CASE("one line proves an operation of the reader's own, in fifteen parts") {
  const Proof proof = prove_square([](const Tensor& g) { return g; });
  CHECK_MESSAGE(static_cast<bool>(proof), proof);
  CHECK(proof.parts.size() == 15);
  for (const std::string name : {"gradients", "mutants", "f32", "repeatable", "zero", "threads", "far", "small",
                                 "linear", "composed", "accumulates", "subsets", "shared", "interleaved", "changed"})
    CHECK(part(proof, name).ok);
  CHECK(proof.f32_error > 0);
  CHECK(proof.f32_error <= 1e-6);
  CHECK(part(proof, "mutants").detail == "6 mutants, 6 caught");
  std::ostringstream text;
  text << proof;
  CHECK(text.str().starts_with("square: proven\n  gradients   ok      12 coordinates of 1 input, "));
  CHECK(proof.message() == "");
}

TEST_CASE("functions of two Variables and of a list, and declared zeros") {
  CHECK(prove("product", [](const Variable& a, const Variable& b) { return mul(a, b); }, {{3, 4}, {4}}));
  CHECK(prove("joined", [](const std::vector<Variable>& x) { return concat({x[0], x[1], x[2]}, 0); }, {{1}, {2}, {3}}));
  const auto softmax_of_one = [](const Variable& x) { return softmax(x); };
  CHECK_FALSE(prove("softmax", softmax_of_one, {{3, 1}}));
  CHECK(prove("softmax", softmax_of_one, {{3, 1}}, {{"input 0", "always 1"}}));
}

TEST_CASE("a wrong factor fails in the gradients, and no mutants are tried") {
  const Proof proof = prove_square([](const Tensor& g) { return g * 0.5; });
  CHECK_FALSE(proof);
  CHECK(part(proof, "gradients").detail.find("ratio 0.5000 everywhere") != std::string::npos);
  CHECK(part(proof, "mutants").detail == "not tried, since the gradients are already wrong");
  CHECK(part(proof, "f32").ok);
  CHECK(proof.message().starts_with("gradients: 12 of 12 coordinates are wrong"));
}

TEST_CASE("a mistake in f32 alone fails in f32 alone") {
  const Proof proof = prove_square([](const Tensor& g) { return g.dtype() == f32 ? g * 1.00001 : g; });
  CHECK(part(proof, "gradients").ok);
  CHECK_FALSE(part(proof, "f32").ok);
  CHECK(proof.f32_error == doctest::Approx(1e-5).epsilon(0.05));
  CHECK(part(proof, "f32").detail.find("more than 1e-06") != std::string::npos);
}

TEST_CASE("one NaN in f32 fails, wherever it stands and whatever comes after it") {
  const auto proof_with = [](i64 input, i64 element) {
    const hidden::Product::Rule rule = [=](const Tensor& da, const Tensor& db, Grads& dx) {
      Tensor g[] = {da, db};
      if (da.dtype() == f32 && input >= 0) g[input].write<float>()[element] = NAN;
      dx.add(0, g[0]);
      dx.add(1, g[1]);
    };
    const auto product = [=](const Variable& a, const Variable& b) { return apply(hidden::Product{rule}, a, b); };
    return prove("product", product, {{5}, {5}}, {}, {.mutants = false});
  };
  for (const i64 input : {0, 1}) {
    for (const i64 element : {0, 2, 4}) {
      const Proof proof = proof_with(input, element);
      CHECK(part(proof, "gradients").ok);
      CHECK_FALSE(part(proof, "f32").ok);
      CHECK_FALSE(part(proof, "zero").ok);
    }
  }
  CHECK(proof_with(-1, 0));
}

TEST_CASE("a value that is wrong in f32 fails, though its gradient is right") {
  const Proof proof = prove("shifted", [](const Variable& x) { return apply(Shifted{}, x); }, {{3, 4}});
  CHECK(part(proof, "gradients").ok);
  CHECK_FALSE(part(proof, "f32").ok);
  CHECK(proof.f32_error == 0);
}

TEST_CASE("what is wrong in f32 for part of the numbers fails, though some draws have no such number") {
  const Proof proof = prove_square([](const Tensor& g) {
    return g.dtype() == f64 ? g : kernels::map(g, "square", [](auto v) { return std::fabs(v) > 2.5 ? -v : v; });
  });
  CHECK(part(proof, "gradients").ok);
  CHECK_FALSE(part(proof, "f32").ok);
}

TEST_CASE("rounding of terms that cancel is not a mistake in f32") {
  // p - 1 of a class that is nearly certain.
  const Sample certain{"certain",
                       "",
                       [](Dtype dtype, u64 seed) {
                         Rng rng(seed);
                         const Tensor x = randn({1, 2}, rng, f64) * 0.1 + Tensor::of<double>({1, 2}, {0, 9});
                         return checkable(
                             [](const Variable& logits) { return cross_entropy(logits, Tensor::of<i32>({1}, {1})); },
                             {x.to(dtype)});
                       },
                       {}};
  const Proof proof = prove(certain, {.mutants = false});
  CHECK_MESSAGE(proof, proof);
  CHECK(proof.f32_error > 1e-6);
  CHECK(part(proof, "f32").detail.ends_with("; what is beyond 1e-6 is rounding"));
}

TEST_CASE("a backward with a memory is not repeatable") {
  const auto calls = std::make_shared<int>(0);
  const Proof proof = prove_square([calls](const Tensor& g) { return g * (1 + 1e-12 * ++*calls); });
  CHECK(part(proof, "gradients").ok);
  CHECK(part(proof, "repeatable").detail == "pass 2 gives other bits for input 0");
}

TEST_CASE("dL/dy = 0 must give 0") {
  const Proof proof = prove_square([](const Tensor& g) { return g + full({}, 1e-12, g.dtype()); });
  CHECK(part(proof, "gradients").ok);
  CHECK(part(proof, "zero").detail == "dL/dy = 0 gives another gradient for input 0");
}

TEST_CASE("bits that depend on the number of threads are found") {
  const int before = threads();
  const Proof proof = prove_square([](const Tensor& g) { return threads() == 3 ? g * (1 + 1e-6) : g; });
  CHECK(part(proof, "threads").detail == "3 threads give other bits for input 0");
  CHECK(threads() == before);
}

TEST_CASE("a sum whose order depends on the threads is found with a few elements, since they are cut") {
  const Proof proof = prove("sum", [](const Variable& x) { return apply(SumByThread{{}}, x); }, {{5, 7}});
  CHECK(part(proof, "gradients").ok);
  CHECK(part(proof, "repeatable").ok);
  CHECK_FALSE(part(proof, "threads").ok);
  CHECK(part(proof, "threads").detail.ends_with("threads give other bits for the output"));
}

TEST_CASE("where nothing is cut, the proof says that threads were not tried") {
  const auto alone = [](const Variable& x) { return reshape(x, {1}); };
  CHECK(part(prove("alone", alone, {{1, 1}}), "threads").detail.starts_with("not cut: "));
  CHECK(
      part(prove("tanh", [](const Variable& x) { return tanh(x); }, {{2}}), "threads").detail.ends_with(" loops cut"));
}

TEST_CASE("what is lost on the way through a file is found") {
  const auto sample_with = [](double loss) {
    return Sample{"scaled", "", [loss](Dtype dtype, u64) {
                    Rng rng(1);
                    Checkable f = checkable([](const Variable& x) { return scale(x, 2.0); }, {randn({3}, rng, dtype)});
                    f.through_file = [leaf = f.leaves[0].value, loss](const std::string& path) mutable {
                      CHECK_FALSE(std::filesystem::exists(path));
                      scale_in_place(leaf.mutable_value(), 1 - loss);
                    };
                    return f;
                  }};
  };
  CHECK(part(prove(sample_with(0)), "file").ok);
  CHECK(part(prove(sample_with(1e-6)), "file").detail == "saved and loaded, other bits for input 0");
}

TEST_CASE("a part in which the function throws has failed; the other parts run, and the program goes on") {
  const Proof impossible = prove("impossible", [](const Variable& x) { return reshape(x, {5}); }, {{3, 4}});
  CHECK_FALSE(impossible);
  CHECK(part(impossible, "gradients").detail.find("reshape") != std::string::npos);
  CHECK(impossible.message().starts_with("gradients, f32, repeatable, zero, threads, far"));
  const Proof in_f32 = prove_square([](const Tensor& g) {
    if (g.dtype() == f32) throw std::runtime_error("no floats");
    return g;
  });
  CHECK(part(in_f32, "gradients").ok);
  CHECK(part(in_f32, "f32").detail == "no floats");
  CHECK(part(in_f32, "threads").detail == "no floats");
  std::ostringstream text;
  text << in_f32;
  CHECK(text.str().find("f32         FAILED  no floats\n") != std::string::npos);
  CHECK(text.str().find("threads     FAILED  as f32") != std::string::npos);
}

TEST_CASE("a function of another number of inputs is a failed part that says so") {
  const auto two = [](const Variable& a, const Variable& b) { return mul(a, b); };
  CHECK(part(prove("product", two, {{3}}), "gradients").detail == "gradcheck: f takes 2 inputs, got 1");
  CHECK(part(prove("product", two, {{3}, {3}, {3}}), "f32").detail == "gradcheck: f takes 2 inputs, got 3");
}

TEST_CASE("without the parts that are exact, those that judge rounded numbers remain") {
  const auto square = [](const Variable& x) { return mul(x, x); };
  std::vector<std::string> names;
  for (const ProofPart& part : prove("square", square, {{3, 4}}, {}, {.mutants = false, .exact = false}).parts)
    names.push_back(part.name);
  CHECK(names == std::vector<std::string>{"gradients", "f32", "far", "small", "linear", "composed", "accumulates",
                                          "subsets", "interleaved"});
}

TEST_CASE("the seed decides the inputs, and so everything that is measured") {
  const auto norm = [](u64 seed) {
    return prove("tanh", [](const Variable& x) { return tanh(x); }, {{3, 4}}, {}, {.mutants = false, .seed = seed})
        .gradients.gradient_norm;
  };
  CHECK(norm(1) == norm(1));
  CHECK(norm(1) != norm(2));
}
