// Chapter 9. `orrery gradcheck --seeds 1..1000`: is correct code ever reported as wrong, for any random numbers?
//
// Every row is proven with every seed, except the parts of a proof that no random number can make fail
// (ProofOptions::exact). A run that is stopped says which seeds are left.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/check/rows.h"

namespace orrery {

/// The seeds first, first + 1, ..., last.
struct SeedRange {
  i64 first = 1, last = 1;
  i64 count() const { return last - first + 1; }
};
/// "3..17", or "3". Wrong usage: anything else, a last before the first, or a number beyond 999,999,999.
SeedRange seed_range(const std::string& text);

/// What is said, besides the exit code 1, where no chosen row has anything to check.
inline constexpr std::string_view nothing_checked =
    "orrery: gradcheck: nothing was checked: every input of these rows has size 0\n";

/// Proves `rows` with every seed of the range; returns the program's exit code.
int prove_seeds(const std::vector<Row>& rows, SeedRange seeds);

}  // namespace orrery
