// Chapter 6. Tests of the attention picture.
#include "apps/toy/attention_map.h"

#include <doctest/doctest.h>

#include <sstream>

#include "core/tensor_ops.h"

using namespace orrery;

TEST_CASE("a head's weights are cut out of the right place") {
  Tensor weights = Tensor::empty({2, 3, 4, 5});
  for (i64 i = 0; i < weights.count(); ++i) weights.write<float>()[i] = static_cast<float>(i);
  const Tensor map = head_weights(weights, 1, 2);
  CHECK(map.shape() == Shape{4, 5});
  CHECK(map.at(0) == (1 * 3 + 2) * 4 * 5);
  CHECK(map.at(19) == 119);
}

TEST_CASE("sharpness is 1 for one key a row and 1/m for none in particular") {
  CHECK(sharpness(Tensor::of<float>({2, 2}, {0, 1, 1, 0}), 2) == 1);
  CHECK(sharpness(full({3, 4}, 0.25), 3) == 0.25);
  CHECK(sharpness(Tensor::of<float>({2, 2}, {0, 1, 0.5F, 0.5F}), 1) == 1);  // only the queries asked for
}

TEST_CASE("an anti-diagonal looks like one") {
  std::ostringstream out;
  print_attention(out, Tensor::of<float>({2, 3}, {0, 1, 0, 0.7F, 0.3F, 0}), {"b", "a"}, {"a", "b"});
  CHECK(out.str() ==
        "     a b \n"
        "  b |  ██|\n"
        "  a |▓▓░░|\n");
}
