// Chapter 1. UTF-8: the bytes of one character.
#include "core/utf8.h"

#include <array>

namespace orrery {

// RFC 3629, section 4: encodings that are longer than necessary, UTF-16's surrogates (D800 to DFFF) and codes beyond
// 10FFFF are not characters.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const size_t bytes = announced_bytes(text[0]);
  if (byte(0) < 0xC0 || byte(0) > 0xF7 || text.size() < bytes) return {};
  size_t code = byte(0) & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!continues_character(text[i])) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<size_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < least[bytes] || surrogate || code > 0x10FFFF ? Character{} : Character{code, bytes};
}

}  // namespace orrery
