// Chapter 6. A picture of attention: shades of grey, two characters a cell so that cells look square.
//
// Serves: apps/toy/toy.cpp
#include "apps/toy/attention_map.h"

#include <algorithm>
#include <array>
#include <iomanip>

namespace orrery {

Tensor head_weights(const Tensor& weights, i64 batch, i64 head) {
  const auto [B, h, n, m] = dims<4>(weights, "attention weights");
  return weights.reshape({B * h * n, m}).rows((batch * h + head) * n, (batch * h + head + 1) * n);
}

double sharpness(const Tensor& map, i64 queries) {
  const auto [n, m] = dims<2>(map, "attention map");
  double total = 0;
  for (i64 i = 0; i < queries; ++i) {
    double largest = 0;
    for (i64 j = 0; j < m; ++j) largest = std::max(largest, map.at(i * m + j));
    total += largest;
  }
  return queries == 0 ? 0 : total / static_cast<double>(queries);
}

void print_attention(std::ostream& out, const Tensor& map, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns) {
  static constexpr std::array<std::string_view, 5> shades{"  ", "░░", "▒▒", "▓▓", "██"};
  const i64 m = map.size(1);
  size_t width = 1;
  for (const std::string& label : rows) width = std::max(width, label.size());
  const std::string margin(width + 3, ' ');
  out << margin << ' ';
  for (const std::string& label : columns) out << std::left << std::setw(2) << label.substr(0, 2);
  out << '\n';
  for (size_t i = 0; i < rows.size(); ++i) {
    out << "  " << std::right << std::setw(static_cast<int>(width)) << rows[i] << " |";
    for (size_t j = 0; j < columns.size(); ++j) {
      const double weight = map.at(static_cast<i64>(i) * m + static_cast<i64>(j));
      const double steps = static_cast<double>(shades.size());
      out << shades[static_cast<size_t>(std::clamp(weight * steps, 0.0, steps - 1))];
    }
    out << "|\n";
  }
}

}  // namespace orrery
