// Chapter 9. Tests of the table of proofs with a mistake built in.
#include "apps/check/bugs.h"

#include <doctest/doctest.h>

#include <sstream>

using namespace orrery;

TEST_CASE("the list has a name and a hint of each, and does not give the mistake away") {
  std::ostringstream out;
  list_bugs(out);
  for (const nn::Bug& bug : nn::bug_zoo()) CHECK(out.str().find(bug.name + "\n  hint: ") != std::string::npos);
  CHECK(out.str().find("mistake") == std::string::npos);
}

TEST_CASE("a mistake takes the place of its rows, and of no others") {
  const nn::Bug& bug = find_bug("softmax-without-inner-product");
  const std::vector<Row> right = all_rows(), wrong = with_bug(right, bug);
  REQUIRE(wrong.size() == right.size());
  size_t replaced = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    CHECK(wrong[i].label() == right[i].label());
    replaced += is_replaced(wrong[i], bug) ? 1 : 0;
    if (wrong[i].label() == "softmax, rows") {
      CHECK(gradcheck(right[i].sample.build(f64)));
      CHECK_FALSE(gradcheck(wrong[i].sample.build(f64)));
    }
  }
  CHECK(replaced == bug.samples.size());
}

TEST_CASE("a mistake without a name here, or without a row, is refused") {
  CHECK_THROWS(find_bug("nonsense"));
  const nn::Bug nowhere{.name = "nowhere", .mistake = "", .hint = "", .samples = {{"nothing", "", {}, {}}}};
  CHECK_THROWS_AS(with_bug(all_rows(), nowhere), Error);
}
