// Chapter 9. Tests of blocks of a text: at random, in a row, and each once in an epoch.
#include "apps/data/blocks.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/error.h"

using namespace orrery;

namespace {

std::vector<i32> numbers(const Tensor& x) { return {x.data<i32>(), x.data<i32>() + x.count()}; }

// 0, 1, 2, ...
Text counted_text(i32 count) {
  std::vector<i32> tokens;
  for (i32 i = 0; i < count; ++i) tokens.push_back(i);
  return short_text(tokens, std::max(count, 1));
}

}  // namespace

TEST_CASE("random blocks are pieces of the text, each with what follows, from its beginning to its end") {
  const Text text = short_text(std::vector<i32>{10, 11, 12, 13, 14, 15}, 16);
  Rng rng(1);
  std::vector<bool> seen(16);
  for (int i = 0; i < 50; ++i) {
    const TextBatch batch = random_blocks(text, 3, 4, rng);
    CHECK(batch.ids.shape() == Shape{3, 4});
    for (i64 j = 0; j < 12; ++j) {
      CHECK(batch.labels.at(j) == batch.ids.at(j) + 1);
      CHECK((j % 4 == 0 || batch.ids.at(j) == batch.ids.at(j - 1) + 1));
    }
    for (i64 b = 0; b < 3; ++b) seen[static_cast<size_t>(batch.ids.at(b * 4))] = true;
  }
  CHECK(seen[10]);
  CHECK(seen[11]);
  CHECK_FALSE(seen[12]);
  CHECK_THROWS_AS(random_blocks(text, 1, 6, rng), Error);
}

TEST_CASE("blocks in a row cover the text") {
  const Text text = counted_text(7);
  const TextBatch batch = blocks_from(text, 0, 2, 3, 3);
  CHECK(numbers(batch.ids) == std::vector<i32>{0, 1, 2, 3, 4, 5});
  CHECK(numbers(batch.labels) == std::vector<i32>{1, 2, 3, 4, 5, 6});
  CHECK_THROWS_AS(blocks_from(text, 1, 2, 3, 3), Error);
  CHECK(numbers(blocks_from(text, 1, 3, 3, 1).ids) == std::vector<i32>{1, 2, 3, 2, 3, 4, 3, 4, 5});
}

TEST_CASE("an epoch of shuffled blocks has each once, one after another from a random beginning, in random order") {
  const Text text = counted_text(43);
  constexpr i64 length = 4;
  ShuffledBlocks shuffled(text, length, Rng(1, 5));
  const i64 count = shuffled.in_epoch();
  REQUIRE(count == 9);  // from whichever beginning: 3 + 9 * 4 + 1 characters fit
  std::vector<std::vector<i32>> orders;
  std::vector<i32> beginnings;
  for (i64 epoch = 0; epoch < 20; ++epoch) {
    const TextBatch batch = shuffled.batch(epoch * count, count);
    std::vector<i32> begins;
    for (i64 b = 0; b < count; ++b) {
      begins.push_back(batch.ids.at(b * length));
      for (i64 j = 0; j < length; ++j) {
        CHECK(batch.ids.at(b * length + j) == begins.back() + j);
        CHECK(batch.labels.at(b * length + j) == begins.back() + j + 1);
      }
    }
    orders.push_back(begins);
    std::sort(begins.begin(), begins.end());
    beginnings.push_back(begins[0]);
    CHECK(begins[0] < length);
    for (size_t b = 1; b < begins.size(); ++b) CHECK(begins[b] == begins[b - 1] + length);
  }
  for (i32 beginning = 0; beginning < length; ++beginning)
    CHECK(std::find(beginnings.begin(), beginnings.end(), beginning) != beginnings.end());
  std::sort(orders.begin(), orders.end());
  CHECK(std::adjacent_find(orders.begin(), orders.end()) == orders.end());
  // A block depends only on its number, also if one begins in the middle, and across epochs.
  ShuffledBlocks other(text, length, Rng(1, 5)), different(text, length, Rng(2, 5));
  const TextBatch across = other.batch(count - 2, 5), again = shuffled.batch(count - 2, 5);
  CHECK(numbers(across.ids) == numbers(again.ids));
  CHECK(numbers(different.batch(count - 2, 5).ids) != numbers(across.ids));
  CHECK(numbers(other.batch(3, 2 * count + 1).ids) == numbers(shuffled.batch(3, 2 * count + 1).ids));  // whole epochs
  ShuffledBlocks single(text, text.count() / 2, Rng(1, 5));
  CHECK(single.in_epoch() == 1);
  CHECK(single.batch(0, 3).ids.size(0) == 3);
  CHECK_THROWS_WITH_AS(ShuffledBlocks(text, 22, Rng(1)), doctest::Contains("too short for blocks of 22"), Error);
}

TEST_CASE("an order that is computed has every number once, and another key gives another order") {
  for (const i64 count : {1, 2, 3, 5, 16, 17, 1000, 4097}) {
    CAPTURE(count);
    std::vector<i64> order;
    i64 in_place = 0;
    for (i64 i = 0; i < count; ++i) {
      order.push_back(permuted(i, count, 12345));
      in_place += order.back() == i;
    }
    if (count >= 1000) CHECK(in_place < 10);
    std::sort(order.begin(), order.end());
    for (i64 i = 0; i < count; ++i) CHECK(order[static_cast<size_t>(i)] == i);
  }
  i64 same = 0;
  for (i64 i = 0; i < 1000; ++i) same += permuted(i, 1000, 1) == permuted(i, 1000, 2);
  CHECK(same < 20);
  CHECK(permuted(7, i64{1} << 40, 3) < i64{1} << 40);
}

TEST_CASE("blocks in a computed order: every block once in an epoch, and another order in the next") {
  const Text text = counted_text(4000);
  constexpr i64 length = 4;
  ShuffledBlocks computed(text, length, Rng(1, 5), 10), listed(text, length, Rng(1, 5));
  const i64 count = computed.in_epoch();
  CHECK(count == listed.in_epoch());
  std::vector<std::vector<i32>> orders;
  for (i64 epoch = 0; epoch < 3; ++epoch) {
    const TextBatch batch = computed.batch(epoch * count, count), other = listed.batch(epoch * count, count);
    std::vector<i32> begins, others;
    for (i64 b = 0; b < count; ++b) {
      begins.push_back(batch.ids.at(b * length));
      others.push_back(other.ids.at(b * length));
      CHECK(batch.labels.at(b * length + length - 1) == begins.back() + length);
    }
    orders.push_back(begins);
    std::sort(begins.begin(), begins.end());
    std::sort(others.begin(), others.end());
    CHECK(begins == others);  // the same blocks
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
  ShuffledBlocks again(text, length, Rng(1, 5), 10);
  CHECK(numbers(again.batch(count + 3, 20).ids) == numbers(computed.batch(count + 3, 20).ids));
}
