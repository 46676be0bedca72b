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

/// Prints each mistake's name and hint. Only a run with the mistake says what it is.
void list_bugs(std::ostream& out);

/// The mistake of this name. Wrong usage: there is none.
const nn::Bug& find_bug(const std::string& name);

/// `rows`, where the mistake's samples replace those of the same name and variant. Error: there is no such row.
std::vector<Row> with_bug(std::vector<Row> rows, const nn::Bug& bug);

/// The rows that the mistake replaces, such as "'softmax, rows' or 'softmax, one element'".
std::string rows_of(const nn::Bug& bug);

/// True if the mistake replaces `row`.
bool is_replaced(const Row& row, const nn::Bug& bug);

}  // namespace orrery
