// Chapter 9. Files of tensors for tests: small ones, foreign ones, and what is wrong with a damaged one.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "core/files/safetensors.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

namespace orrery {

/// A file as other programs write it: no checksums, any header.
inline std::string raw_file(const std::string& header, const std::string& elements) {
  std::string length(8, '\0');
  const u64 size = header.size();
  std::memcpy(length.data(), &size, length.size());
  return length + header + elements;
}

/// What reading a file of this text says is wrong with it, without the path.
inline std::string complaint(const TemporaryFolder& folder, const std::string& text) {
  const std::string path = folder / "hostile.safetensors";
  set_contents(path, text);
  const std::string error = small::error_of([&] { read_safetensors(path); });
  const std::string prefix = "read " + path + ": ";
  REQUIRE_MESSAGE((error.empty() || error.starts_with(prefix)), error);
  return error.empty() ? "" : error.substr(prefix.size());
}

inline TensorMap small_tensors() {
  return {{"weight", Tensor::of<float>({2, 2}, {1.5F, -2, 0, 4})},
          {"bias", Tensor::of<double>({2}, {1e300, -0.0})},
          {"ids", Tensor::of<i32>({3}, {1, -2, 3})}};
}

}  // namespace orrery
