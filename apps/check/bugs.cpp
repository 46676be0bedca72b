// Chapter 9. Putting a mistake into the table.
//
// Serves: autograd/check/proof.h
#include "apps/check/bugs.h"

#include <algorithm>

#include "apps/program/columns.h"
#include "apps/program/command.h"
#include "core/error.h"

namespace orrery {
namespace {

bool same_row(const Sample& a, const Sample& b) { return a.name == b.name && a.variant == b.variant; }

}  // namespace

void list_bugs(std::ostream& out) {
  for (const nn::Bug& bug : nn::bug_zoo()) out << bug.name << '\n' << broken("hint: " + bug.hint, 2);
}

const nn::Bug& find_bug(const std::string& name) {
  const auto& zoo = nn::bug_zoo();
  const auto bug = std::find_if(zoo.begin(), zoo.end(), [&](const nn::Bug& b) { return b.name == name; });
  if (bug == zoo.end())
    usage_error("--bug", "no mistake is called '" + name + "'; orrery gradcheck --bug list names all");
  return *bug;
}

std::vector<Row> with_bug(std::vector<Row> rows, const nn::Bug& bug) {
  for (const Sample& wrong : bug.samples) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return same_row(r.sample, wrong); });
    check(row != rows.end(), "bug zoo", bug.name, " replaces ", wrong.name, ", ", wrong.variant,
          ", but there is no such row");
    row->sample = wrong;
  }
  return rows;
}

std::string rows_of(const nn::Bug& bug) {
  if (bug.samples.empty()) return "no names: no row contains it, and a check of its own finds it";
  std::string names;
  for (const Row& row : all_rows())
    if (is_replaced(row, bug)) names += (names.empty() ? "'" : " or '") + row.label() + "'";
  return names;
}

bool is_replaced(const Row& row, const nn::Bug& bug) {
  return std::any_of(bug.samples.begin(), bug.samples.end(), [&](const Sample& s) { return same_row(s, row.sample); });
}

}  // namespace orrery
