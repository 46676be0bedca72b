// Chapter 3. Tests of the proof: a right operation passes every part, and each part fails for a mistake of its own
// kind.
#include "autograd/proof.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/parallel.h"

using namespace orrery;

namespace {

const ProofPart& part(const Proof& proof, const std::string& name) {
  for (const ProofPart& p : proof.parts)
    if (p.name == name) return p;
  FAIL("no part " << name);
  return proof.parts.front();
}

// x^2, with what a test wants to be wrong about its backward.
template <class Wrong>
struct Square {
  static constexpr std::string_view name = "square";
  Wrong wrong;
  Saved x;
  Tensor forward(const Tensor& in) { return x = in, in * in; }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, wrong(dy * x.get() * 2.0)); }
};

template <class Wrong>
Proof prove_square(Wrong wrong) {
  return prove("square", [wrong](const Variable& x) { return apply(Square<Wrong>{wrong, {}}, x); }, {{3, 4}});
}

}  // namespace

TEST_CASE("one line proves an operation of the reader's own, in six parts") {
  const Proof proof = prove_square([](const Tensor& g) { return g; });
  CHECK_MESSAGE(static_cast<bool>(proof), proof);
  CHECK(proof.parts.size() == 6);
  for (const std::string name : {"gradients", "mutants", "f32", "repeatable", "zero", "threads"})
    CHECK(part(proof, name).ok);
  CHECK(proof.f32_error > 0);
  CHECK(proof.f32_error <= 1e-6);
  CHECK(part(proof, "mutants").detail == "6 mutants, 6 caught");
  std::ostringstream text;
  text << proof;
  CHECK(text.str().starts_with("square: proven\n  gradients  ok      12 coordinates of 1 inputs"));
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
  CHECK(part(proof, "mutants").detail == "not tried, since the right backward is none");
  CHECK(part(proof, "f32").ok);
  CHECK(proof.message().starts_with("gradients: 12 of 12 coordinates are wrong"));
}

TEST_CASE("a mistake in f32 alone fails in f32 alone") {
  const Proof proof = prove_square([](const Tensor& g) { return g.dtype() == f32 ? g * 1.00001 : g; });
  CHECK(part(proof, "gradients").ok);
  CHECK_FALSE(part(proof, "f32").ok);
  CHECK(proof.f32_error == doctest::Approx(1e-5).epsilon(0.05));
  CHECK(part(proof, "f32").detail.find("more than 1e-6") != std::string::npos);
}

TEST_CASE("not a number in f32 fails") {
  CHECK_FALSE(part(prove_square([](const Tensor& g) { return g.dtype() == f32 ? g * std::nan("") : g; }), "f32").ok);
}

TEST_CASE("a backward with a memory is not repeatable") {
  const auto calls = std::make_shared<int>(0);
  const Proof proof = prove_square([calls](const Tensor& g) { return g * (1 + 1e-12 * ++*calls); });
  CHECK(part(proof, "gradients").ok);
  CHECK(part(proof, "repeatable").detail == "two passes give other bits for input 0");
}

TEST_CASE("dL/dy = 0 must give 0") {
  const Proof proof = prove_square([](const Tensor& g) { return g + full({}, 1e-12, g.dtype()); });
  CHECK(part(proof, "gradients").ok);
  CHECK(part(proof, "zero").detail == "dL/dy = 0 gives another gradient for input 0");
}

TEST_CASE("bits that depend on the number of threads") {
  const int before = threads();
  const Proof proof = prove_square([](const Tensor& g) { return threads() == 3 ? g * (1 + 1e-6) : g; });
  CHECK(part(proof, "threads").detail == "3 threads give other bits for input 0");
  CHECK(threads() == before);
}

TEST_CASE("what is lost on the way through a file") {
  const auto sample_with = [](double loss) {
    return Sample{"scaled", "", [loss](Dtype dtype) {
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

TEST_CASE("a function that throws is a failed part, not the end of the program") {
  const Proof proof = prove("impossible", [](const Variable& x) { return reshape(x, {5}); }, {{3, 4}});
  CHECK_FALSE(proof);
  CHECK(part(proof, "runs").detail.find("reshape") != std::string::npos);
}
