// Chapter 9. The known name that a mistyped one was most likely meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// How many characters must be inserted, removed or replaced to turn `a` into `b` (Levenshtein 1966).
size_t edit_distance(std::string_view a, std::string_view b);
/// The first of `names` with the smallest distance to `typed`; "" if more than a third of `typed` would have to change.
std::string nearest(const std::string& typed, const std::vector<std::string>& names);

}  // namespace orrery
