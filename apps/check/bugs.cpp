// Chapter 9. Putting a mistake into the table.
#include "apps/check/bugs.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace orrery {
namespace {

bool same_row(const Sample& a, const Sample& b) { return a.name == b.name && a.variant == b.variant; }

}  // namespace

std::vector<Row> with_bug(std::vector<Row> rows, const nn::Bug& bug) {
  for (const Sample& wrong : bug.samples) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return same_row(r.sample, wrong); });
    check(row != rows.end(), "bug zoo", bug.name, " replaces ", wrong.name, ", ", wrong.variant,
          ", but there is no such row");
    row->sample = wrong;
  }
  return rows;
}

bool is_replaced(const Row& row, const nn::Bug& bug) {
  return std::any_of(bug.samples.begin(), bug.samples.end(), [&](const Sample& s) { return same_row(s, row.sample); });
}

std::string symptoms(const Proof& proof) {
  const auto& parts = proof.parts;
  const bool wrong_gradients =
      std::any_of(parts.begin(), parts.end(), [](const ProofPart& p) { return p.name == "gradients" && !p.ok; });
  Proof shown{.name = proof.name, .variant = proof.variant, .gradients = {}, .mutants = {}, .parts = {}};
  std::string also;
  for (const ProofPart& part : parts) {
    constexpr std::array compare_gradients{"far", "small", "interleaved", "step"};
    const bool compares =
        std::find(compare_gradients.begin(), compare_gradients.end(), part.name) != compare_gradients.end();
    if (wrong_gradients && !part.ok && compares) {  // fails because the gradients are wrong
      also += (also.empty() ? "also failed: " : ", ") + part.name;
    } else {
      shown.parts.push_back({part.name, part.ok, part.detail});
    }
  }
  return shown.message() + (also.empty() ? "" : "\n" + also);
}

}  // namespace orrery
