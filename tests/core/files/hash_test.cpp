// Chapter 8. Tests of the fingerprint: known answers, and that every bit counts.
#include "core/files/hash.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"

using namespace orrery;

TEST_CASE("FNV-1a gives the published answers") {
  Fingerprint empty, a, foobar;
  CHECK(empty.hex() == "cbf29ce484222325");
  a.add('a');
  CHECK(a.hex() == "af63dc4c8601ec8c");
  for (char c : std::string("foobar")) foobar.add(c);
  CHECK(foobar.hex() == "85944171f73967e8");
}

TEST_CASE("a tensor's fingerprint depends on shape, dtype and every element") {
  const auto of = [](const Tensor& x) {
    Fingerprint fingerprint;
    fingerprint.add(x);
    return fingerprint.value();
  };
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  CHECK(of(x) == of(x.clone()));
  CHECK(of(x) != of(x.reshape({4})));
  CHECK(of(x) != of(x.to(f64)));
  CHECK(of(Tensor::of<float>({1}, {0.0F})) != of(Tensor::of<float>({1}, {-0.0F})));
  for (i64 i = 0; i < 4; ++i) {
    Tensor changed = x.clone();
    changed.write<float>()[i] += 1e-6F;
    CHECK(of(changed) != of(x));
  }
}

TEST_CASE("mixing lets every bit of the input move the lowest bits of the hash") {
  for (int bit = 0; bit < 32; ++bit) {
    int moved = 0;
    for (int i = 0; i < 64; ++i) {
      Fingerprint a, b;
      a.add(i);
      a.add(7);
      b.add(i ^ static_cast<int>(u32{1} << bit));
      b.add(7);
      moved += (a.mixed() ^ b.mixed()) % 8 != 0;
    }
    CHECK(moved > 40);  // 56 expected
  }
}
