// Chapter 9. Tests of the rows and of the names that select them.
#include "apps/check/rows.h"

#include <doctest/doctest.h>

#include <set>
#include <sstream>

using namespace orrery;

TEST_CASE("no two rows have the same label, and layers stand under nn/") {
  std::set<std::string> labels;
  size_t layers = 0;
  for (const Row& row : all_rows()) {
    CHECK(labels.insert(row.label()).second);
    layers += row.name.starts_with("nn/") ? 1 : 0;
  }
  for (const std::string label :
       {"softmax, rows", "nn/Linear", "nn/EncoderLayer, post-norm", "nn/Transformer, post-norm"})
    CHECK(labels.contains(label));
  CHECK(layers >= 30);
  CHECK(labels.size() >= layers + 100);
}

TEST_CASE("names and globs select by name or label, in the table's order") {
  const std::vector<Row> rows = all_rows();
  const auto chosen = [&](const std::vector<std::string>& patterns) { return chosen_rows(rows, patterns); };
  CHECK(chosen({}).size() == rows.size());
  CHECK(chosen({"softmax, rows"}).size() == 1);
  CHECK(chosen({"softmax", "softmax"}).size() == chosen({"softmax"}).size());
  CHECK(chosen({"nn/*"}).front().name == "nn/Linear");
  CHECK(chosen({"nn/*", "add"}).front().name == "add");
  CHECK(chosen({"nn/Transformer, pre*"}).size() == 1);
  CHECK_THROWS(chosen({"softmax", "nonsense"}));
}

TEST_CASE("the list names every row once") {
  std::ostringstream out;
  list_rows(out, chosen_rows(all_rows(), {"softmax", "dropout"}));
  CHECK(out.str() ==
        "dropout  long\ndropout  p 0.3\ndropout  p 0\ndropout  p 1\nsoftmax  rows\nsoftmax  one element\nsoftmax  size "
        "0\n"
        "softmax  tails\nsoftmax  long\n");
}
