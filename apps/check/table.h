// Chapter 9. The table of proofs as text of 100 columns, and as JSON.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/check/rows.h"
#include "apps/program/terminal.h"
#include "autograd/check/proof.h"

namespace orrery {

/// A row and its proof.
struct ProvenRow {
  Row row;
  Proof proof;
};

void print_proof_header(std::ostream& out);
/// Prints one line; below it, what was cut off in the line, in full, and `message`, which says what failed.
void print_proof(std::ostream& out, const ProvenRow& proven, const Terminal& terminal, const std::string& message);
/// Prints the gradients that are declared to be zero, and why.
void print_zeros(std::ostream& out, const std::vector<ProvenRow>& table);

/// The whole table, with nothing cut off, as one JSON object. `chosen` is how many rows were asked for; if the table
/// has fewer, the object says that it is not complete.
std::string proofs_as_json(const std::vector<ProvenRow>& table, i64 seed, size_t chosen);

}  // namespace orrery
