// Chapter 3. A proof: runs its parts. Those that take more than one pass: autograd/check/proof_parts.h.
//
// Every part builds the function anew from its sample, so that no part can disturb another.
#include "autograd/check/proof.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <system_error>

#include "autograd/check/proof_parts.h"
#include "autograd/check/rounding.h"
#include "core/machine/clock.h"

namespace orrery {
namespace {

using namespace parts;

ProofPart prove_gradients(const Sample& sample, u64 seed, Proof& proof) {
  const DrawnReport drawn = gradcheck(sample, seed);
  proof.gradients = drawn.report;
  proof.redrawn = drawn.redrawn;
  std::ostringstream detail;
  detail << proof.gradients.coordinates << " coordinates of " << proof.gradients.inputs
         << (proof.gradients.inputs == 1 ? " input" : " inputs") << ", worst error " << std::setprecision(2)
         << proof.gradients.worst_error;
  if (drawn.redrawn > 0) detail << ", drawn again, since the first numbers showed nothing";
  return part("gradients", proof.gradients.message, detail.str());
}

ProofPart prove_mutants(const Sample& sample, u64 seed, Proof& proof) {
  if (!proof.gradients) return part("mutants", "not tried, since the gradients are already wrong");
  proof.mutants = mutate(sample, seed);
  std::ostringstream text;
  text << proof.mutants;
  return {"mutants", static_cast<bool>(proof.mutants), text.str()};
}

// Every draw must be right, since a mistake for some numbers may show in one draw and not in another. A long tensor has
// enough numbers for one draw.
ProofPart prove_f32(const Sample& sample, u64 seed, Proof& proof) {
  constexpr u64 between = 0x9E3779B97F4A7C15;
  const u64 draws = longest_leaf(sample.build(f32, seed)) < long_tensor ? 4 : 1;
  std::string problem, worst_at;
  double output_error = 0;
  i64 rounded = 0;
  for (u64 draw = 0; draw < draws && problem.empty(); ++draw) {
    const SinglePrecision found = compare_precisions(sample, seed + draw * between);
    if (found.gradient_error > proof.f32_error) {
      proof.f32_error = found.gradient_error;
      worst_at = found.worst_at;
    }
    output_error = std::max(output_error, found.output_error);
    rounded += found.rounded;
    problem = found.problem;
  }
  std::ostringstream detail;
  detail << std::setprecision(2) << proof.f32_error << " of a leaf's max |g|" << (worst_at.empty() ? "" : " at ")
         << worst_at << ", " << output_error << " of max |y|, " << draws << (draws == 1 ? " draw" : " draws");
  if (rounded > 0) detail << "; what is beyond 1e-6 is rounding";
  return part("f32", problem, detail.str());
}

ProofPart prove_zero(const Sample& sample, u64 seed) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = sample.build(dtype, seed);
    const std::vector<Tensor> gradients = gradients_of(f, zeros(f.output().shape(), dtype));
    for (size_t i = 0; i < gradients.size(); ++i)
      if (largest_magnitude({gradients[i]}) != 0)
        return part("zero", "dL/dy = 0 gives another gradient for " + f.leaves[i].name);
  }
  return part("zero", "", "dL/dy = 0 gives dL/dx = 0");
}

// A new folder, which is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (mkdtemp(path_.data()) == nullptr)
      fail("file", "cannot make a temporary folder like ", path_, ": ", std::generic_category().message(errno));
  }
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

// An empty part if the function cannot be saved in a file.
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

std::string_view verdict_on(const Proof& proof) {
  if (!proof) return "NOT PROVEN";
  return proof.gradients.coordinates > 0 ? "proven" : "runs, but there is nothing to prove";
}

}  // namespace

Proof prove(const Sample& sample, const ProofOptions& options) {
  const double start = steady_seconds();
  const KeepThreads keep;
  set_threads(1);  // fastest for tiny tensors; no result depends on it
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
  if (options.exact) add("repeatable", [&] { return prove_repeatable(sample, seed); });
  if (options.exact) add("zero", [&] { return prove_zero(sample, seed); });
  if (options.exact) add("threads", [&] { return prove_threads(sample, seed); });
  add("far", [&] { return prove_far(sample, seed); });
  add("small", [&] { return prove_small(sample, seed); });
  add("linear", [&] { return prove_linear(sample, seed); });
  add("composed", [&] { return prove_composed(sample, seed); });
  add("accumulates", [&] { return prove_accumulates(sample, seed); });
  add("subsets", [&] { return prove_subsets(sample, seed); });
  if (options.exact) add("shared", [&] { return prove_shared(sample, seed); });
  add("interleaved", [&] { return prove_interleaved(sample, seed); });
  if (options.exact) add("changed", [&] { return prove_changed(sample, seed); });
  if (options.exact) add("padding", [&] { return prove_padding(sample, seed); });
  add("step", [&] { return prove_step(sample, seed); });
  if (options.exact) add("file", [&] { return prove_file(sample, seed); });
  std::erase_if(proof.parts, [](const ProofPart& p) { return p.name.empty(); });
  proof.seconds = steady_seconds() - start;
  return proof;
}

Sample sample_of(std::string name, const VariableFunction& f, std::vector<Shape> shapes,
                 std::vector<DeclaredZero> zeros) {
  auto build = [f, shapes = std::move(shapes), zeros = std::move(zeros)](Dtype dtype, u64 seed) {
    Rng rng(7 * seed);
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(randn(shape, rng, dtype));
    return checkable(f, inputs, {}, zeros);
  };
  return {std::move(name), "", std::move(build), {}};
}

Proof prove(std::string name, const VariableFunction& f, std::vector<Shape> shapes, std::vector<DeclaredZero> zeros,
            const ProofOptions& options) {
  return prove(sample_of(std::move(name), f, std::move(shapes), std::move(zeros)), options);
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
  for (const ProofPart& line : lines) text += (text.empty() ? "" : "\n") + line.name + ": " + line.text();
  return text;
}

std::ostream& operator<<(std::ostream& out, const Proof& proof) {
  out << proof.name << (proof.variant.empty() ? "" : ", ") << proof.variant << ": " << verdict_on(proof);
  for (auto part = proof.parts.begin(); part != proof.parts.end(); ++part) {
    const auto first = std::find_if(proof.parts.begin(), part, [&](const ProofPart& earlier) {
      return !earlier.ok && earlier.detail == part->detail;
    });
    out << "\n  " << std::left << std::setw(12) << part->name << std::right << (part->ok ? "ok      " : "FAILED  ")
        << (first == part ? part->text() : "as " + first->name);
  }
  for (const DeclaredZero& zero : proof.gradients.zeros)
    out << "\n  zero by declaration: " << zero.name << " (" << zero.reason << ')';
  return out;
}

}  // namespace orrery
