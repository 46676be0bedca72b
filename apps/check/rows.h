// Chapter 9. The rows of the table of proofs: their names in `orrery gradcheck`, and choosing rows by name.
#pragma once

#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"

namespace orrery {

/// A sample with its name in the table, which is "nn/..." for layers and models, and "rivals/..." for
/// those of apps/tasks/translate/rivals/.
struct Row {
  std::string name;
  Sample sample;
  /// "softmax, one element"
  std::string label() const;
};

/// Every operation, layer and model.
std::vector<Row> all_rows();
/// Every operation. These are the first of all rows.
std::vector<Row> operation_rows();

/// The rows of `rows` that match a pattern, in the table's order; all rows if there are no patterns. A pattern is a
/// glob for a row's name or label, with or without the "nn/" or "rivals/" of layers. Wrong usage: a pattern that
/// matches no row.
std::vector<Row> chosen_rows(const std::vector<Row>& rows, const std::vector<std::string>& patterns);

/// Prints names and variants.
void list_rows(std::ostream& out, const std::vector<Row>& rows);

}  // namespace orrery
