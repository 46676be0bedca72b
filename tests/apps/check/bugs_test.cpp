// Chapter 9. Tests of the table of proofs with a mistake built in.
#include "apps/check/bugs.h"

#include <doctest/doctest.h>

#include "apps/check/bug_numbers.h"

using namespace orrery;

TEST_CASE("a mistake takes the place of its rows, and of no others") {
  const nn::Bug& bug = bug_of(22);
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

TEST_CASE("symptoms leave out guesses, and what follows from wrong gradients") {
  const auto of = [](std::vector<ProofPart> parts) {
    return symptoms({.name = "", .variant = "", .gradients = {}, .mutants = {}, .parts = std::move(parts)});
  };
  const ProofPart wrong{"gradients", false, "wrong"}, far{"far", false, "wrong as well"};
  const ProofPart interleaved{"interleaved", false, "wrong again"}, changed{"changed", false, "no error", "a Tensor?"};
  CHECK(of({wrong, {"f32", true, "0"}, far, interleaved}) == "gradients: wrong\nalso failed: far, interleaved");
  CHECK(of({{"gradients", true, "12"}, far, changed}) == "far: wrong as well\nchanged: no error");
  CHECK(of({wrong, changed}) == "gradients: wrong\nchanged: no error");
  CHECK(of({{"gradients", true, "12"}}) == "");
}

TEST_CASE("a mistake without a row is refused") {
  const nn::Bug nowhere{.name = "nowhere", .mistake = "", .hint = "", .samples = {{"nothing", "", {}, {}}}};
  CHECK_THROWS_AS(with_bug(all_rows(), nowhere), Error);
}
