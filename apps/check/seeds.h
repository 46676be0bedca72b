// Chapter 9. `orrery gradcheck --seeds 1..1000`: is correct code ever reported as wrong, for any random numbers?
//
// Every row is proven with every seed, except the parts of a proof that no random number can make fail
// (ProofOptions::exact). --resume keeps one JSON line per finished seed; a later run continues after the last one.
//   {"seed":7,"names":["softmax"],"rows":3,"redrawn":0,"failed":[],"seconds":0.2}
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/check/rows.h"

namespace orrery {

/// The seeds first, first + 1, ..., last.
struct SeedRange {
  i64 first = 1, last = 1;
  i64 count() const { return last - first + 1; }
};
/// "3..17", or "3". Wrong usage: anything else, a last before the first, or a number beyond 999,999,999.
SeedRange seed_range(const std::string& text);

/// A correct row that was reported as wrong.
struct FalseAlarm {
  std::string row, message;
};

/// What one seed found.
struct SeedResult {
  i64 seed = 0;
  std::vector<std::string> names;  ///< as given on the command line
  size_t rows = 0;
  i64 redrawn = 0;  ///< how often inputs were drawn again because they showed nothing, in all rows
  std::vector<FalseAlarm> failed;
  double seconds = 0;
};

/// The file of results.
class SeedFile {
 public:
  /// With the path "", results are kept only in memory. An incomplete last line is dropped. Errors: a file with other
  /// contents, or with the results of other rows than the `rows` rows chosen by `names`.
  SeedFile(std::string path, const std::vector<std::string>& names, size_t rows);
  /// Appends the result to the file at once. Error: the file cannot be written.
  void add(const SeedResult& result);
  const std::map<i64, SeedResult>& results() const { return results_; }

 private:
  std::string path_;
  std::map<i64, SeedResult> results_;
};

/// What is said, besides the exit code 1, where no chosen row has anything to check.
inline constexpr std::string_view nothing_checked =
    "orrery: gradcheck: nothing was checked: every input of these rows has size 0\n";

/// Proves `rows` with every seed of the range that is not in the file `path`; returns the program's exit code.
int prove_seeds(const std::vector<Row>& rows, const std::vector<std::string>& names, SeedRange seeds,
                const std::string& path);

}  // namespace orrery
