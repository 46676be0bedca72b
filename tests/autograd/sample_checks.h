// Chapter 6. What the tests of the tables of proofs share: the proof of every row, and the names in the headers.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "autograd/check/proof_parts.h"

namespace orrery::samples {

/// A random dL/dy that f32 and f64 hold alike.
inline Tensor cotangent(const Shape& shape) {
  Rng rng(23);
  return randn(shape, rng);
}

/// Adds to `names` the first group of the first match of `pattern` in each line of a file.
inline void find_names(const std::string& path, const std::string& pattern, std::set<std::string>& names) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  const std::regex regex(pattern);
  std::smatch match;
  for (std::string line; std::getline(file, line);)
    if (std::regex_search(line, match, regex)) names.insert(match[1]);
}

/// The operations that a header declares: all functions, except those that compute one by plain loops to be read.
inline std::set<std::string> functions_of(const std::string& header) {
  std::set<std::string> functions;
  const std::string function = R"(^[A-Za-z][\w:<>, ]* (?!\w+_by_loops)(\w+)\()";
  find_names(std::string(ORRERY_SOURCE_DIR) + "/" + header, function, functions);
  return functions;
}

/// The headers that autograd/ops.h includes.
inline std::set<std::string> operation_headers() {
  std::set<std::string> headers;
  find_names(ORRERY_SOURCE_DIR "/autograd/ops.h", R"re(^#include "([\w/]+\.h)")re", headers);
  return headers;
}

/// Every operation: what these headers declare.
inline std::set<std::string> operations() {
  std::set<std::string> all;
  for (const std::string& header : operation_headers()) all.merge(functions_of(header));
  return all;
}

inline std::set<std::string> names_of(const std::vector<Sample>& table) {
  std::set<std::string> names;
  for (const Sample& sample : table) names.insert(sample.name);
  return names;
}

/// What one of two sets of names lacks: "f has no row in X" for each function, "X has a row for f, which does not
/// exist" for each row; "" if they are equal. A test compares it with "", since doctest prints a set as {?}.
inline std::string row_differences(const std::set<std::string>& functions, const std::set<std::string>& rows,
                                   const std::string& table) {
  std::string text;
  for (const std::string& name : functions)
    if (!rows.contains(name)) text += "\n" + name + " has no row in " + table;
  for (const std::string& name : rows)
    if (!functions.contains(name)) text += "\n" + table + " has a row for " + name + ", which does not exist";
  return text;
}

/// Every part of the proof of every row except mutants (mutation_test.cpp). A sanitizer looks at memory, not at
/// numbers: it sees each row in passes of f32 and f64, in chunks of one element on 1, 3 and 16 threads, with padding;
/// and in turn with gradients of a choice of leaves, or with inputs that change.
inline void check_table(const std::vector<Sample>& table) {
  for (size_t i = 0; i < table.size(); ++i) {
    const Sample& sample = table[i];
#ifdef ORRERY_SANITIZED
    const parts::KeepThreads keep;
    const auto threads = [](const Sample& s, u64 seed) {
      return parts::prove_thread_counts(s, seed, std::array{3, 16}, "1, 3, 16");
    };
    for (const auto& prove_part :
         {+threads, parts::prove_padding, i % 2 == 0 ? parts::prove_subsets : parts::prove_changed}) {
      const ProofPart part = prove_part(sample, 1);
      CHECK_MESSAGE((part.ok || part.name.empty()), sample.name, " ", sample.variant, " ", part.name, ": ",
                    part.text());
    }
#else
    const Proof proof = prove(sample, {.mutants = false});
    CHECK_MESSAGE(static_cast<bool>(proof), proof);
#endif
  }
}

}  // namespace orrery::samples
