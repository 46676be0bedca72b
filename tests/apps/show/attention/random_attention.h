// Chapter 9. What the tests of the attention page show, invented weights; and whether a page shows certain weights.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "apps/show/attention/attention_page.h"
#include "core/random.h"
#include "core/tensor_ops.h"

namespace orrery::small {

/// Weights [1, heads, rows, columns] of which each row adds up to 1.
inline Tensor random_weights(i64 heads, i64 rows, i64 columns, u64 seed) {
  Rng numbers(seed);
  Tensor weights = rand_uniform({1, heads, rows, columns}, 0, 1, numbers, f32);
  for (i64 head = 0; head < heads; ++head)
    for (i64 i = 0; i < rows; ++i) {
      double sum = 0;
      for (i64 j = 0; j < columns; ++j) sum += weights(0, head, i, j);
      for (i64 j = 0; j < columns; ++j) weights(0, head, i, j) = static_cast<float>(weights(0, head, i, j) / sum);
    }
  return weights;
}

/// Two layers of three heads in the encoder, one layer of three in the decoder.
inline AttentionMaps random_maps(i64 S, i64 T) {
  return {.encoder = {random_weights(3, S, S, 1), random_weights(3, S, S, 2)},
          .decoder_self = {random_weights(3, T, T, 3)},
          .decoder_cross = {random_weights(3, T, S, 4)}};
}

/// Whether a number of the page has the four digits of a weight.
inline bool shows(const nlohmann::json& number, double weight) {
  return number.is_number_integer() && std::abs(number.get<double>() / 10'000 - weight) <= 0.500001e-4;
}

/// The page's numbers of a layer are the first `rows` and `columns` of its weights [1, heads, n, m].
inline void check_weights(const nlohmann::json& layer, const Tensor& weights, i64 rows, i64 columns) {
  REQUIRE(std::ssize(layer) == weights.size(1));
  for (i64 head = 0; head < weights.size(1); ++head) {
    const nlohmann::json& shown = layer.at(static_cast<size_t>(head));
    REQUIRE(std::ssize(shown) == rows);
    for (i64 i = 0; i < rows; ++i) {
      const nlohmann::json& row = shown.at(static_cast<size_t>(i));
      REQUIRE(std::ssize(row) == columns);
      for (i64 j = 0; j < columns; ++j) CHECK(shows(row.at(static_cast<size_t>(j)), weights(0, head, i, j)));
    }
  }
}

}  // namespace orrery::small
