// Chapter 8. Tests of what both fused attentions share: where a head's matrices lie, and their transposed copies.
#include "autograd/ops/fused/attention/packed_heads.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

using namespace orrery;
using namespace orrery::packed_heads;

TEST_CASE("a head's parts lie side by side in the packed rows") {
  const Sizes s{.B = 2, .n = 3, .m = 4, .h = 2, .d_k = 5, .d_v = 7};
  std::vector<float> q(2 * 3 * 10), kv(2 * 4 * 24);
  const Packed<float> parts{
      .q = q.data(), .kv = kv.data(), .q_stride = 10, .kv_stride = 24, .k_column = 0, .v_column = 10};
  CHECK(parts.Q(s, {1, 1}).data - q.data() == 3 * 10 + 5);
  CHECK(parts.K(s, {1, 1}).data - kv.data() == 4 * 24 + 5);
  CHECK(parts.V(s, {1, 1}).data - kv.data() == 4 * 24 + 10 + 7);
  CHECK(parts.V(s, {0, 1}).from(2).data - kv.data() == 2 * 24 + 10 + 7);
}

TEST_CASE("a transposed copy is scaled, and its rows are filled up with zeros") {
  std::vector<double> x(3 * 4);
  std::iota(x.begin(), x.end(), 1);
  std::vector<double> to(2 * 8, -1);
  transpose(HeadMatrix<const double>{x.data(), 4}, 3, 2, 0.5, to.data(), 8);
  CHECK(to == std::vector<double>{0.5, 2.5, 4.5, 0, 0, 0, 0, 0, 1, 3, 5, 0, 0, 0, 0, 0});
}

TEST_CASE("rows are cleared in their own columns only") {
  std::vector<double> x(2 * 3, 1);
  clear_rows(HeadMatrix<double>{x.data(), 3}, 2, 2);
  CHECK(x == std::vector<double>{0, 0, 1, 0, 0, 1});
}
