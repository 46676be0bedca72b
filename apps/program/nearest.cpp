// Chapter 9. The known name that a mistyped one was most likely meant to be.
#include "apps/program/nearest.h"

#include <algorithm>
#include <numeric>

namespace orrery {

// Wagner and Fischer (1974): distances[k] is that of the first i characters of `a` to the first k of `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
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

std::string nearest(const std::string& typed, const std::vector<std::string>& names) {
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
