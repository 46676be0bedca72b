// Chapter 9. `orrery gradcheck --bug`: the table of proofs with a classic mistake built in, as an exercise.
//
// Serves: autograd/check/proof.h
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/check/rows.h"
#include "nn/check/bug_zoo.h"

namespace orrery {

/// Prints each mistake's name and hint. What it is, only a run with it tells.
void list_bugs(std::ostream& out);

/// Wrong usage: no mistake has this name.
const nn::Bug& find_bug(const std::string& name);

/// `rows` with the mistake's samples in place of those of the same name and variant.
/// Error: a sample of the mistake that takes no row's place.
std::vector<Row> with_bug(std::vector<Row> rows, const nn::Bug& bug);

/// "'softmax, rows' or 'softmax, one element'": the rows that the mistake takes the place of.
std::string rows_of(const nn::Bug& bug);

/// True when `row` is one that the mistake takes the place of.
bool is_replaced(const Row& row, const nn::Bug& bug);

}  // namespace orrery
