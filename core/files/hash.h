// Chapter 8. A fingerprint of numbers: equal bits, equal hash.
//
// FNV-1a, 64 bits (Fowler, Noll, Vo): h <- (h xor byte) * 1099511628211. Used to compare two training runs in one line,
// and to decide by the content of a sequence whether it is held out. It guards against accidents, not against forgery.
#pragma once

#include <iomanip>
#include <span>
#include <sstream>
#include <string>

#include "core/tensor.h"

namespace orrery {

/// Feeds bytes into a running fingerprint.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes) {
    for (std::byte byte : bytes) state_ = (state_ ^ static_cast<u64>(byte)) * 1099511628211u;
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(T value) { add(std::as_bytes(std::span(&value, 1))); }
  /// Adds the shape, the dtype and every bit of the elements.
  void add(const Tensor& x) {
    add(static_cast<int>(x.dtype()));
    for (i64 size : x.shape()) add(size);
    dispatch(x.dtype(), [&](auto t) {
      using T = decltype(t);
      add(std::as_bytes(std::span(x.data<T>(), static_cast<size_t>(x.count()))));
    });
  }

  u64 value() const { return state_; }
  /// The fingerprint with every bit mixed into all others (MurmurHash3's finaliser, Appleby 2011). Use this if you need
  /// only some of the bits: the lowest bits of FNV depend on nothing but the lowest bits of the input.
  u64 mixed() const {
    u64 h = state_;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
  }
  /// As 16 hexadecimal digits.
  std::string hex() const {
    std::ostringstream text;
    text << std::hex << std::setw(16) << std::setfill('0') << state_;
    return text.str();
  }

 private:
  u64 state_ = 14695981039346656037u;
};

}  // namespace orrery
