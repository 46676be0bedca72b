// Chapter 8. Tests of fingerprints and of CRC32C: known answers, and that every bit counts.
#include "core/files/hash.h"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "core/files/crc32c.h"
#include "core/random.h"
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

namespace {

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::byte> random_bytes(size_t n, u64 seed) {
  Rng rng(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.bits64());
  return bytes;
}

}  // namespace

TEST_CASE("checksums are the published ones") {
  // The check value of every catalogue, and the test patterns of RFC 3720, appendix B.4.
  std::vector<std::byte> zeros(32), ones(32, std::byte{0xFF}), up(32), down(32);
  for (size_t i = 0; i < 32; ++i) {
    up[i] = static_cast<std::byte>(i);
    down[i] = static_cast<std::byte>(31 - i);
  }
  for (auto* checksum : {&crc32c, &crc32c_portable}) {
    CHECK(checksum(bytes_of_text("123456789"), 0) == 0xE3069283);
    CHECK(checksum(bytes_of_text(""), 0) == 0);
    CHECK(checksum(zeros, 0) == 0x8A9136AA);
    CHECK(checksum(ones, 0) == 0x62A8AB43);
    CHECK(checksum(up, 0) == 0x46DD794E);
    CHECK(checksum(down, 0) == 0x113FDB5C);
  }
}

TEST_CASE("both ways agree for every length and alignment, in one piece or two") {
  const std::vector<std::byte> bytes = random_bytes(100, 1);
  const std::span<const std::byte> all(bytes);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; begin + length <= all.size(); ++length) {
      const auto part = all.subspan(begin, length);
      const u32 expected = crc32c_portable(part);
      REQUIRE(crc32c(part) == expected);
      const auto first = part.first(length / 3), rest = part.subspan(length / 3);
      REQUIRE(crc32c(rest, crc32c(first)) == expected);
      REQUIRE(crc32c_portable(rest, crc32c_portable(first)) == expected);
    }
  }
}

TEST_CASE("every flipped bit changes it") {
  std::vector<std::byte> bytes = random_bytes(300, 2);
  const u32 expected = crc32c(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    REQUIRE(crc32c(bytes) != expected);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}
