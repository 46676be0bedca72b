// Chapter 3. The parts of a proof, one function each.
//
// Every part builds the function anew from its sample, so that no part can disturb another.
// Read next: autograd/first_nan.h
#include "autograd/proof.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "core/parallel.h"

namespace orrery {
namespace {

// A random dL/dy that f32 and f64 hold alike.
Tensor cotangent(const Shape& shape, Dtype dtype) {
  Rng rng(23);
  return randn(shape, rng).to(dtype);
}

double largest(const std::vector<Tensor>& tensors) {
  double result = 0;
  for (const Tensor& x : tensors) {
    for (i64 i = 0; i < x.count(); ++i) {
      if (!(std::fabs(x.at(i)) <= result)) result = std::fabs(x.at(i));
    }
  }
  return result;
}

// The name of the first leaf whose tensors differ in any bit; "the output" where one follows the leaves; "" if none.
std::string first_difference(const Parameters& leaves, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_bits(a[i], b[i])) return i < leaves.size() ? leaves[i].name : "the output";
  return "";
}

// The gradients of all leaves, and the output.
std::vector<Tensor> one_pass(const Checkable& f) {
  const Variable y = f.output();
  std::vector<Tensor> result = gradients_of(f, cotangent(y.shape(), y.dtype()));
  result.push_back(y.value());
  return result;
}

ProofPart part(std::string name, const std::string& problem, const std::string& detail = "") {
  return {std::move(name), problem.empty(), problem.empty() ? detail : problem};
}

ProofPart prove_gradients(const Sample& sample, const ProofOptions& options, Proof& proof) {
  GradcheckOptions check = sample.options;
  check.seed = options.seed;
  proof.gradients = gradcheck(sample.build(f64), check);
  std::ostringstream detail;
  detail << proof.gradients.coordinates << " coordinates of " << proof.gradients.inputs << " inputs, worst error "
         << std::setprecision(2) << proof.gradients.worst_error;
  return part("gradients", proof.gradients.message, detail.str());
}

ProofPart prove_mutants(const Sample& sample, const ProofOptions& options, Proof& proof) {
  if (!proof.gradients) return part("mutants", "not tried, since the right backward is none");
  GradcheckOptions check = sample.options;
  check.seed = options.seed;
  proof.mutants = mutate(sample.build(f64), check);
  std::ostringstream text;
  text << proof.mutants;
  return {"mutants", static_cast<bool>(proof.mutants), text.str()};
}

// f32 and f64 start from the same numbers: those of f32.
ProofPart prove_f32(const Sample& sample, Proof& proof) {
  const Checkable single = sample.build(f32), exact = sample.build(f64);
  check(single.leaves.size() == exact.leaves.size(), "f32", "the sample has other inputs than in f64");
  for (size_t i = 0; i < single.leaves.size(); ++i) {
    Variable leaf = exact.leaves[i].value;
    copy_into(leaf.mutable_value(), single.leaves[i].value.value().to(f64));
  }
  const Shape shape = exact.output().shape();
  const std::vector<Tensor> right = gradients_of(exact, cotangent(shape, f64));
  const std::vector<Tensor> rounded = gradients_of(single, cotangent(shape, f32));
  std::string worst;
  double error = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    const double e = largest({rounded[i].to(f64) - right[i]});
    if (!(e <= error)) error = e, worst = exact.leaves[i].name;
  }
  const double scale = largest(right);
  proof.f32_error = error == 0 ? 0 : error / scale;
  std::ostringstream detail;
  detail << std::setprecision(2) << proof.f32_error << " of max |g|" << (worst.empty() ? "" : " at ") << worst;
  const bool ok = proof.f32_error <= 1e-6;
  return part("f32", ok ? "" : detail.str() + ", more than 1e-6", detail.str());
}

ProofPart prove_repeatable(const Sample& sample) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = sample.build(dtype);
    const std::string where = first_difference(f.leaves, one_pass(f), one_pass(f));
    if (!where.empty()) return part("repeatable", "two passes give other bits for " + where);
  }
  return part("repeatable", "", "two fresh passes, equal bits");
}

ProofPart prove_zero(const Sample& sample) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = sample.build(dtype);
    const std::vector<Tensor> gradients = gradients_of(f, zeros(f.output().shape(), dtype));
    for (size_t i = 0; i < gradients.size(); ++i)
      if (largest({gradients[i]}) != 0) return part("zero", "dL/dy = 0 gives another gradient for " + f.leaves[i].name);
  }
  return part("zero", "", "dL/dy = 0 gives dL/dx = 0");
}

struct KeepThreads {
  const int before = threads();
  ~KeepThreads() { set_threads(before); }
};

ProofPart prove_threads(const Sample& sample) {
  const KeepThreads keep;
  const std::array f{sample.build(f32), sample.build(f64)};
  set_threads(1);
  const std::array alone{one_pass(f[0]), one_pass(f[1])};
  for (const int count : {2, 3, 8}) {
    set_threads(count);
    for (size_t i = 0; i < f.size(); ++i) {
      const std::string where = first_difference(f[i].leaves, alone[i], one_pass(f[i]));
      if (!where.empty()) return part("threads", std::to_string(count) + " threads give other bits for " + where);
    }
  }
  return part("threads", "", "equal bits for 1, 2, 3 and 8");
}

// A path that nobody else uses, and no file there afterwards.
struct TemporaryFile {
  const std::string path =
      std::filesystem::temp_directory_path() / ("orrery-proof-" + std::to_string(getpid()) + ".safetensors");
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

ProofPart prove_file(const Sample& sample) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = sample.build(dtype);
    const TemporaryFile file;
    const auto state = [&] {
      std::vector<Tensor> values;
      for (const NamedParameter& leaf : f.leaves) values.push_back(leaf.value.value().clone());
      values.push_back(f.output().value().clone());
      return values;
    };
    const std::vector<Tensor> before = state();
    f.through_file(file.path);
    const std::string where = first_difference(f.leaves, before, state());
    if (!where.empty()) return part("file", "saved and loaded, other bits for " + where);
  }
  return part("file", "", "saved and loaded, equal bits");
}

}  // namespace

Proof prove(const Sample& sample, const ProofOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Proof proof{.name = sample.name, .variant = sample.variant, .gradients = {}, .mutants = {}, .parts = {}};
  try {
    proof.parts.push_back(prove_gradients(sample, options, proof));
    if (options.mutants) proof.parts.push_back(prove_mutants(sample, options, proof));
    proof.parts.push_back(prove_f32(sample, proof));
    proof.parts.push_back(prove_repeatable(sample));
    proof.parts.push_back(prove_zero(sample));
    proof.parts.push_back(prove_threads(sample));
    if (sample.build(f32).through_file) proof.parts.push_back(prove_file(sample));
  } catch (const Error& error) { proof.parts.push_back({"runs", false, error.what()}); }
  proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return proof;
}

Proof::operator bool() const {
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [](const ProofPart& part) { return part.ok; });
}

std::string Proof::message() const {
  std::string text;
  for (const ProofPart& part : parts) {
    if (part.ok) continue;
    text += (text.empty() ? "" : "\n") + part.name + ": " + part.detail;
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const Proof& proof) {
  out << proof.name << (proof.variant.empty() ? "" : ", ") << proof.variant << (proof ? ": proven" : ": NOT PROVEN");
  for (const ProofPart& part : proof.parts)
    out << "\n  " << std::left << std::setw(11) << part.name << std::right << (part.ok ? "ok      " : "FAILED  ")
        << part.detail;
  for (const DeclaredZero& zero : proof.gradients.zeros)
    out << "\n  zero by declaration: " << zero.name << " (" << zero.reason << ')';
  return out;
}

}  // namespace orrery
