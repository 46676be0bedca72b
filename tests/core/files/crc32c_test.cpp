// Chapter 9. Tests of CRC32C: known answers, and the two ways to compute it.
#include "core/files/crc32c.h"

#include <doctest/doctest.h>

#include <numeric>
#include <string_view>
#include <vector>

#include "core/random.h"

using namespace orrery;

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
