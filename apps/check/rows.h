// Chapter 9. The rows of the table of proofs under the names that `orrery gradcheck` gives them, and how names select
// them.
//
// Serves: autograd/check/proof.h
#pragma once

#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"

namespace orrery {

/// A sample under the name the table gives it: layers and models stand under "nn/".
struct Row {
  std::string name;
  Sample sample;
  /// "softmax, one element"
  std::string label() const;
};

/// Every operation, layer and model.
std::vector<Row> all_rows();
/// The first of them: every operation.
std::vector<Row> operation_rows();

/// The rows of `rows` that some pattern matches, in the table's order; all when there are no patterns. A pattern is a
/// glob for a row's name or label, with or without the "nn/" of layers. Wrong usage: a pattern that matches none.
std::vector<Row> chosen_rows(const std::vector<Row>& rows, const std::vector<std::string>& patterns);

/// Prints names and variants.
void list_rows(std::ostream& out, const std::vector<Row>& rows);

}  // namespace orrery
