// Chapter 9. `orrery gradcheck --bug NUMBER`: the rows of the table of proofs with a classic mistake built in.
//
// Which mistake has which number: apps/check/bug_numbers.h.
#pragma once

#include <string>
#include <vector>

#include "apps/check/rows.h"
#include "apps/check/zoo/bug_zoo.h"
#include "autograd/check/proof.h"

namespace orrery {

/// `rows`, where the mistake's samples replace those of the same name and variant. Error: there is no such row.
std::vector<Row> with_bug(std::vector<Row> rows, const nn::Bug& bug);

/// True if the mistake replaces `row`.
bool is_replaced(const Row& row, const nn::Bug& bug);

/// What failed in the proof of a row with a mistake, for a reader who hunts it. Guesses at the mistake are left out,
/// and so are the details of parts that only find the wrong gradients once more.
std::string symptoms(const Proof& proof);

}  // namespace orrery
