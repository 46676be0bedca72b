// Chapter 9. The rows of the table of proofs: listing them, and choosing some by name.
#include "apps/check/rows.h"

#include <algorithm>
#include <iomanip>
#include <ostream>

#include "apps/program/options.h"
#include "apps/tasks/translate/rivals/samples.h"
#include "autograd/check/samples.h"
#include "nn/check/samples.h"

namespace orrery {
namespace {

// The "nn/" or "rivals/" of a layer may be left out.
bool matches(const std::string& pattern, const Row& row) {
  const std::string& name = row.sample.name;
  for (const std::string& text : {row.name, row.label(), name, name + ", " + row.sample.variant})
    if (matches_any({pattern}, text)) return true;
  return false;
}

}  // namespace

std::string Row::label() const { return sample.variant.empty() ? name : name + ", " + sample.variant; }

std::vector<Row> operation_rows() {
  std::vector<Row> rows;
  for (const Sample& sample : operation_samples()) rows.push_back({sample.name, sample});
  return rows;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows = operation_rows();
  for (const Sample& sample : nn::module_samples()) rows.push_back({"nn/" + sample.name, sample});
  for (const Sample& sample : translate::rival_samples()) rows.push_back({"rivals/" + sample.name, sample});
  return rows;
}

std::vector<Row> chosen_rows(const std::vector<Row>& rows, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return rows;
  for (const std::string& pattern : patterns) {
    const bool known = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return matches(pattern, row); });
    if (!known)
      usage_error("gradcheck", "no operation or layer is called '" + pattern + "'; orrery gradcheck --list names all");
  }
  std::vector<Row> chosen;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(chosen), [&](const Row& row) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return matches(p, row); });
  });
  return chosen;
}

void list_rows(std::ostream& out, const std::vector<Row>& rows) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  for (const Row& row : rows)
    out << std::left << std::setw(static_cast<int>(width)) << row.name << "  " << row.sample.variant << '\n';
}

}  // namespace orrery
