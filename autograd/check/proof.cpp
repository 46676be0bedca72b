// Chapter 3. The parts of a proof, one function each.
//
// Every part builds the function anew from its sample, so that no part can disturb another.
// Serves: autograd/check/proof.h
#include "autograd/check/proof.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <limits>
#include <ostream>
#include <sstream>

#include "core/machine/parallel.h"

namespace orrery {
namespace {

// A random dL/dy that f32 and f64 hold alike.
Tensor cotangent(const Shape& shape, Dtype dtype, u64 seed) {
  Rng rng(23 * seed);
  return randn(shape, rng).to(dtype);
}

// The largest magnitude; infinity where anything is not a number, which no comparison would find.
double largest(const std::vector<Tensor>& tensors) {
  double result = 0;
  for (const Tensor& x : tensors) {
    for (i64 i = 0; i < x.count(); ++i) {
      const double magnitude = std::fabs(x.at(i));
      if (!(magnitude <= result)) result = std::isnan(magnitude) ? std::numeric_limits<double>::infinity() : magnitude;
    }
  }
  return result;
}

std::string name_of(const Parameters& leaves, size_t i) { return i < leaves.size() ? leaves[i].name : "the output"; }

// The name of the first leaf whose tensors differ in any bit; "the output" where one follows the leaves; "" if none.
std::string first_difference(const Parameters& leaves, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_bits(a[i], b[i])) return name_of(leaves, i);
  return "";
}

// The gradients of all leaves, and the output.
std::vector<Tensor> one_pass(const Checkable& f, u64 seed) {
  const Variable y = f.output();
  std::vector<Tensor> result = gradients_of(f, cotangent(y.shape(), y.dtype(), seed));
  result.push_back(y.value());
  return result;
}

ProofPart part(std::string name, const std::string& problem, const std::string& detail = "") {
  return {std::move(name), problem.empty(), problem.empty() ? detail : problem};
}

GradcheckOptions check_options(const Sample& sample, u64 seed) {
  GradcheckOptions options = sample.options;
  options.seed = seed;
  return options;
}

ProofPart prove_gradients(const Sample& sample, u64 seed, Proof& proof) {
  proof.gradients = gradcheck(sample.build(f64, seed), check_options(sample, seed));
  std::ostringstream detail;
  detail << proof.gradients.coordinates << " coordinates of " << proof.gradients.inputs << " inputs, worst error "
         << std::setprecision(2) << proof.gradients.worst_error;
  return part("gradients", proof.gradients.message, detail.str());
}

ProofPart prove_mutants(const Sample& sample, u64 seed, Proof& proof) {
  if (!proof.gradients) return part("mutants", "not tried, since the right backward is none");
  proof.mutants = mutate(sample.build(f64, seed), check_options(sample, seed));
  std::ostringstream text;
  text << proof.mutants;
  return {"mutants", static_cast<bool>(proof.mutants), text.str()};
}

// What f32 is off by: gradients as a part of the largest of them all, the output as a part of its own largest number.
struct Rounding {
  double gradients = 0, zeros = 0, output = 0;  // zeros: where f64 gives none, by declaration
  std::string where;                            // the worst gradient
  bool ok() const { return gradients <= 1e-6 && zeros <= 1e-4 && output <= 1e-6; }
};

// f32 and f64 start from the same numbers, those of f32.
Rounding rounding_of(const Sample& sample, u64 seed) {
  const Checkable single = sample.build(f32, seed), exact = sample.build(f64, seed);
  check(single.leaves.size() == exact.leaves.size(), "f32", "the sample has other inputs than in f64");
  for (size_t i = 0; i < single.leaves.size(); ++i) {
    Variable leaf = exact.leaves[i].value;
    copy_into(leaf.mutable_value(), single.leaves[i].value.value().to(f64));
  }
  const std::vector<Tensor> right = one_pass(exact, seed), rounded = one_pass(single, seed);
  const auto relative = [](double error, double to) { return error == 0 ? 0 : error / to; };
  const double scale = largest({right.begin(), right.end() - 1});
  Rounding result;
  for (size_t i = 0; i + 1 < right.size(); ++i) {
    const double error = relative(largest({rounded[i].to(f64) - right[i]}), scale);
    const std::string& name = exact.leaves[i].name;
    const bool zero =
        std::any_of(exact.zeros.begin(), exact.zeros.end(), [&](const auto& z) { return z.name == name; });
    double& worst = zero ? result.zeros : result.gradients;
    if (error <= worst) continue;
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    if (!zero) result.where = name;
  }
  result.output = relative(largest({rounded.back().to(f64) - right.back()}), largest({right.back()}));
  return result;
}

// Some numbers magnify rounding (the norm of a row of nearly equal ones); a mistake is one with any numbers.
ProofPart prove_f32(const Sample& sample, u64 seed, Proof& proof) {
  constexpr u64 draws = 4, between = 0x9E3779B97F4A7C15;
  Rounding found = rounding_of(sample, seed);
  for (u64 draw = 1; draw < draws && !found.ok(); ++draw) found = rounding_of(sample, seed + draw * between);
  proof.f32_error = std::max(found.gradients, found.zeros);
  std::ostringstream detail;
  detail << std::setprecision(2) << proof.f32_error << " of max |g|" << (found.where.empty() ? "" : " at ")
         << found.where << ", " << found.output << " of max |y|";
  return part("f32", found.ok() ? "" : detail.str() + ", more than 1e-6 with any of 4 seeds", detail.str());
}

ProofPart prove_repeatable(const Sample& sample, u64 seed) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = sample.build(dtype, seed);
    const std::string where = first_difference(f.leaves, one_pass(f, seed), one_pass(f, seed));
    if (!where.empty()) return part("repeatable", "two passes give other bits for " + where);
  }
  return part("repeatable", "", "two fresh passes, equal bits");
}

ProofPart prove_zero(const Sample& sample, u64 seed) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = sample.build(dtype, seed);
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

// Tensors this small would stay on one thread: a grain of one element gives every thread its share.
ProofPart prove_threads(const Sample& sample, u64 seed) {
  const std::array f{sample.build(f32, seed), sample.build(f64, seed)};
  const KeepThreads keep;
  const SleepingThreads sleeping;
  const GrainScope cut(1);
  set_threads(1);
  const std::array alone{one_pass(f[0], seed), one_pass(f[1], seed)};
  const i64 loops = cut.loops_cut() / 2;
  if (loops == 0) return part("threads", "", "not cut: no loop has two elements or tasks to share");
  for (const int count : {2, 3, 8}) {
    set_threads(count);
    for (size_t i = 0; i < f.size(); ++i) {
      const std::string where = first_difference(f[i].leaves, alone[i], one_pass(f[i], seed));
      if (!where.empty()) return part("threads", std::to_string(count) + " threads give other bits for " + where);
    }
  }
  return part("threads", "", "equal bits for 1, 2, 3 and 8, with " + std::to_string(loops) + " loops cut");
}

// A folder that nobody else uses, and no folder there afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() { check(mkdtemp(path_.data()) != nullptr, "file", "cannot make a temporary folder like ", path_); }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file() const { return path_ + "/proof.safetensors"; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "orrery-proof-XXXXXX";
};

// Nothing, where there is no file to go through.
ProofPart prove_file(const Sample& sample, u64 seed) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = sample.build(dtype, seed);
    if (!f.through_file) return {};
    const TemporaryFolder folder;
    const auto state = [&] {
      std::vector<Tensor> values;
      for (const NamedParameter& leaf : f.leaves) values.push_back(leaf.value.value().clone());
      values.push_back(f.output().value().clone());
      return values;
    };
    const std::vector<Tensor> before = state();
    f.through_file(folder.file());
    const std::string where = first_difference(f.leaves, before, state());
    if (!where.empty()) return part("file", "saved and loaded, other bits for " + where);
  }
  return part("file", "", "saved and loaded, equal bits");
}

}  // namespace

Proof prove(const Sample& sample, const ProofOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Proof proof{.name = sample.name, .variant = sample.variant, .gradients = {}, .mutants = {}, .parts = {}};
  const auto add = [&](const char* name, const std::function<ProofPart()>& prove_part) {
    try {
      proof.parts.push_back(prove_part());
    } catch (const std::exception& error) { proof.parts.push_back({name, false, error.what()}); }
  };
  const u64 seed = options.seed;
  add("gradients", [&] { return prove_gradients(sample, seed, proof); });
  if (options.mutants) add("mutants", [&] { return prove_mutants(sample, seed, proof); });
  add("f32", [&] { return prove_f32(sample, seed, proof); });
  add("repeatable", [&] { return prove_repeatable(sample, seed); });
  add("zero", [&] { return prove_zero(sample, seed); });
  add("threads", [&] { return prove_threads(sample, seed); });
  add("file", [&] { return prove_file(sample, seed); });
  std::erase_if(proof.parts, [](const ProofPart& p) { return p.name.empty(); });
  proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return proof;
}

Proof::operator bool() const {
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [](const ProofPart& part) { return part.ok; });
}

// Parts that failed for the same reason share a line.
std::string Proof::message() const {
  std::vector<ProofPart> lines;
  for (const ProofPart& part : parts) {
    if (part.ok) continue;
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&](const ProofPart& line) { return line.detail == part.detail; });
    if (same == lines.end())
      lines.push_back(part);
    else
      same->name += ", " + part.name;
  }
  std::string text;
  for (const ProofPart& line : lines) text += (text.empty() ? "" : "\n") + line.name + ": " + line.detail;
  return text;
}

std::ostream& operator<<(std::ostream& out, const Proof& proof) {
  out << proof.name << (proof.variant.empty() ? "" : ", ") << proof.variant << (proof ? ": proven" : ": NOT PROVEN");
  for (auto part = proof.parts.begin(); part != proof.parts.end(); ++part) {
    const auto first = std::find_if(proof.parts.begin(), part, [&](const ProofPart& earlier) {
      return !earlier.ok && earlier.detail == part->detail;
    });
    out << "\n  " << std::left << std::setw(11) << part->name << std::right << (part->ok ? "ok      " : "FAILED  ")
        << (first == part ? part->detail : "as " + first->name);
  }
  for (const DeclaredZero& zero : proof.gradients.zeros)
    out << "\n  zero by declaration: " << zero.name << " (" << zero.reason << ')';
  return out;
}

}  // namespace orrery
