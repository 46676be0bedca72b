// Chapter 9. `orrery gradcheck --seeds 1..1000`: is right code ever called wrong, whatever the numbers?
//
// Every row is proven with every seed. With --resume the results stand in a file, one line of JSON for each seed that
// is finished, and a run that finds the file goes on behind it: stopped at any moment, it loses at most one seed.
//   {"seed":7,"names":["softmax"],"rows":3,"redrawn":0,"failed":[],"seconds":0.2}
// Serves: autograd/check/proof.h
#pragma once

#include <map>
#include <string>
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

/// A row that was called wrong.
struct FalseAlarm {
  std::string row, message;
};

/// What one seed found.
struct SeedResult {
  i64 seed = 0;
  std::vector<std::string> names;  ///< as given on the command line
  size_t rows = 0;
  i64 redrawn = 0;  ///< draws that showed nothing, of all rows
  std::vector<FalseAlarm> failed;
  double seconds = 0;
};

/// The file of results.
class SeedFile {
 public:
  /// No file, "", keeps the results in memory alone. A last line that was cut off is forgotten. Errors: a file that
  /// holds something else, or the results of other rows than `rows` rows chosen by `names`.
  SeedFile(std::string path, const std::vector<std::string>& names, size_t rows);
  /// Written at once. Error: the file cannot be written.
  void add(const SeedResult& result);
  const std::map<i64, SeedResult>& results() const { return results_; }

 private:
  std::string path_;
  std::map<i64, SeedResult> results_;
};

/// Proves `rows` with every seed of the range that `file` lacks; returns the program's exit code.
int prove_seeds(const std::vector<Row>& rows, const std::vector<std::string>& names, SeedRange seeds,
                const std::string& path);

}  // namespace orrery
