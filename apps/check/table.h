// Chapter 9. The table of proofs as text of 100 columns, and as JSON.
//
// Serves: autograd/check/proof.h
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/check/rows.h"
#include "apps/program/terminal.h"
#include "autograd/check/proof.h"

namespace orrery {

/// A row and what became of it.
struct ProvenRow {
  Row row;
  Proof proof;
};

void print_proof_header(std::ostream& out);
/// One line; below it in full what was cut in it, and what failed.
void print_proof(std::ostream& out, const ProvenRow& proven, const Terminal& terminal);
/// The gradients that are zero by declaration, and why.
void print_zeros(std::ostream& out, const std::vector<ProvenRow>& table);

/// Everything the table says, uncut, as one JSON object; `chosen` rows were asked for, and where the table has fewer it
/// says that it is not complete.
std::string proofs_as_json(const std::vector<ProvenRow>& table, i64 seed, size_t chosen);

}  // namespace orrery
