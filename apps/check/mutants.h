// Chapter 9. The table of mutants: how many wrong backwards of each operation, and which check caught them.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "apps/check/rows.h"
#include "autograd/check/mutation.h"

namespace orrery {

/// A row and the results of its mutants.
struct MutatedRow {
  Row row;
  MutationReport report;
  std::string error;  ///< why there are no mutants; "" if there are
};

/// Sums over many rows.
struct MutantCount {
  i64 mutants = 0, caught = 0, equivalent = 0;  ///< equivalent ones are not among the mutants
  i64 rows_not_mutated = 0;                     ///< because their own backward is wrong, or they do not run
};
MutantCount count_mutants(const std::vector<MutatedRow>& table);

/// A line for each operation, and one for each rule of the engine.
void print_mutants(std::ostream& out, const std::vector<MutatedRow>& table);
/// Prints the mutants that change no gradient, by row and reason.
void print_equivalent(std::ostream& out, const std::vector<MutatedRow>& table);
/// Prints the mutants that no check noticed, or why the row has none.
void print_uncaught(std::ostream& out, const MutatedRow& row);

/// Every mutant and its result as one JSON object. `chosen` is how many rows were asked for; if the table has fewer,
/// the object says that it is not complete.
std::string mutants_as_json(const std::vector<MutatedRow>& table, i64 seed, size_t chosen);

}  // namespace orrery
