// Chapter 9. The known name that a mistyped one was most likely meant to be.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// How many characters must be inserted, removed or replaced to turn `a` into `b` (Levenshtein 1966).
inline size_t edit_distance(std::string_view a, std::string_view b) {
  // Wagner and Fischer (1974): distances[k] is that of the first i characters of `a` to the first k of `b`.
  std::vector<size_t> distances(b.size() + 1);
  std::iota(distances.begin(), distances.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = distances[0];  // of i - 1 characters to k - 1
    distances[0] = i;
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t replaced = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = distances[k];
      distances[k] = std::min({replaced, distances[k] + 1, distances[k - 1] + 1});
    }
  }
  return distances[b.size()];
}

/// The first of `names` with the smallest distance to `typed`; "" if more than a third of `typed` would have to change.
inline std::string nearest(const std::string& typed, const std::vector<std::string>& names) {
  std::string best;
  size_t least = typed.size() / 3 + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(typed, name);
    if (distance >= least) continue;
    least = distance;
    best = name;
  }
  return best;
}

}  // namespace orrery
