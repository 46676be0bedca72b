// Chapter 6. Tests of Mask: causal, padding, tables, what joins them, blocks, printing, and what does not fit.
#include "core/mask.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

TEST_CASE("the empty mask allows everything") {
  const Mask mask;
  CHECK(mask.allowed(0, 0, 0, 4, 1, 5));
  CHECK(mask.range(0, 0, 1, 5).first == 0);
  CHECK(mask.range(0, 0, 1, 5).limit == 5);
  CHECK(mask.allows_all());
  CHECK_FALSE(mask.is_causal());
  CHECK_FALSE(mask.has_padding());
  CHECK_FALSE(mask.has_table());
  CHECK_NOTHROW(mask.check_fits(7, 3, 2, 9));
}

TEST_CASE("causal: query i of n sees key j of m where j <= i + m - n") {
  const Mask mask = Mask::causal();
  for (const i64 n : {1, 3, 5}) {
    for (const i64 m : {1, 3, 5, 8}) {
      for (i64 i = 0; i < n; ++i) {
        for (i64 j = 0; j < m; ++j) CHECK(mask.allowed(2, 1, i, j, n, m) == (j <= i + m - n));
        CHECK(mask.range(2, i, n, m).first == 0);
        CHECK(mask.range(2, i, n, m).limit == std::clamp<i64>(i + m - n + 1, 0, m));
      }
    }
  }
}

TEST_CASE("padding: each batch row sees its first keys") {
  const Mask mask = Mask::padding(Tensor::of<i32>({3}, {2, 0, 9}));
  CHECK(mask.has_padding());
  for (i64 j = 0; j < 4; ++j) {
    CHECK(mask.allowed(0, 0, 1, j, 2, 4) == (j < 2));
    CHECK_FALSE(mask.allowed(1, 0, 1, j, 2, 4));
    CHECK(mask.allowed(2, 0, 1, j, 2, 4));
  }
  CHECK(mask.length(0, 4) == 2);
  CHECK(mask.length(2, 4) == 4);
}

TEST_CASE("a table allows where it is not 0, and axes of size 1 repeat") {
  const Tensor table = Tensor::of<i32>({2, 3}, {1, 0, 5, 0, 1, 0});
  const Mask plain = Mask::allow(table), per_batch = Mask::allow(concat({table, flip(table, 0)}, 0).reshape({2, 2, 3})),
             per_head = Mask::allow(concat({table, flip(table, 0)}, 0).reshape({1, 2, 2, 3}));
  for (i64 i = 0; i < 2; ++i) {
    for (i64 j = 0; j < 3; ++j) {
      const bool here = table.at(i * 3 + j) != 0, flipped = table.at((1 - i) * 3 + j) != 0;
      CHECK(plain.allowed(5, 7, i, j, 2, 3) == here);
      CHECK(per_batch.allowed(0, 7, i, j, 2, 3) == here);
      CHECK(per_batch.allowed(1, 7, i, j, 2, 3) == flipped);
      CHECK(per_head.allowed(5, 0, i, j, 2, 3) == here);
      CHECK(per_head.allowed(5, 1, i, j, 2, 3) == flipped);
    }
  }
  CHECK(plain.has_table());
  const Mask one_row = Mask::allow(Tensor::of<i32>({1, 3}, {0, 1, 1}));
  CHECK_FALSE(one_row.allowed(0, 0, 9, 0, 10, 3));
  CHECK(one_row.allowed(0, 0, 9, 1, 10, 3));
}

TEST_CASE("two paddings leave the shorter lengths, and change neither") {
  const Mask a = Mask::padding(Tensor::of<i32>({2}, {1, 4})), b = Mask::padding(Tensor::of<i32>({2}, {3, 2}));
  CHECK((a & b).length(0, 9) == 1);
  CHECK((a & b).length(1, 9) == 2);
  CHECK(a.length(1, 9) == 4);
  CHECK(b.length(0, 9) == 3);
  CHECK((Mask() & b).length(1, 9) == 2);
  CHECK(error_of([&] { a& Mask::padding(Tensor::of<i32>({1}, {3})); }) == "mask: paddings of 2 and 1 batch rows");
}

TEST_CASE("a mask keeps copies of what it was made of") {
  Tensor lengths = Tensor::of<i32>({1}, {2}), table = full({2, 2}, 1, Dtype::i32);
  const Mask padding = Mask::padding(lengths), allow = Mask::allow(table);
  fill(lengths, 1);
  fill(table, 0);
  CHECK(padding.length(0, 9) == 2);
  CHECK(allow.allowed(0, 0, 1, 1, 2, 2));
}

TEST_CASE("a mask prints its parts") {
  CHECK(text_of(Mask()) == "everything");
  CHECK(text_of(Mask::causal()) == "causal");
  CHECK(text_of(Mask::causal() & Mask::padding(Tensor::of<i32>({2}, {3, 4}))) == "causal & padding(3, 4)");
  CHECK(text_of(Mask::allow(Tensor::of<i32>({2, 3}, {1, 0, 1, 0, 1, 0})) & Mask::causal()) ==
        "causal & allow[1, 1, 2, 3]\n  1.1\n  .1.");
}

TEST_CASE("a large table is printed without its elements") {
  CHECK(text_of(Mask::allow(full({33, 32}, 1, Dtype::i32))) == "allow[1, 1, 33, 32]");
}

TEST_CASE("a mask allows all unless some part of it does not") {
  CHECK(Mask().allows_all());
  for (const Mask& mask : {Mask::causal(), Mask::window(3, 1 << 20), Mask::padding(full({2}, 1, Dtype::i32)),
                           Mask::allow(full({2, 2}, 1, Dtype::i32))})
    CHECK_FALSE(mask.allows_all());
}

TEST_CASE("padding_of reads the lengths from the ids, if there is a padding id") {
  const Tensor ids = Tensor::of<i32>({2, 3}, {5, 0, 0, 6, 0, 7});
  CHECK(text_of(padding_of(ids, 0)) == "padding(1, 3)");
  CHECK(text_of(padding_of(ids, -1)) == "everything");
}

TEST_CASE("parts of the wrong kind are refused") {
  CHECK(error_of([] { Mask::padding(full({2}, 1.0)); }) == "mask: lengths must be i32 [B], got shape [2]");
  CHECK(error_of([] {
          Mask::padding(full({2, 2}, 1, Dtype::i32));
        }) == "mask: lengths must be i32 [B], got shape [2, 2]");
  CHECK(error_of([] { Mask::padding(Tensor::of<i32>({2}, {3, -1})); }) == "mask: length -1 of batch row 1 is negative");
  CHECK(error_of([] {
          Mask::allow(full({2, 2}, 1.0));
        }) == "mask: a table must be i32 [n, m], [B, n, m] or [B, h, n, m], got shape [2, 2]");
  CHECK_THROWS_AS(Mask::allow(full({2}, 1, Dtype::i32)), Error);
  CHECK_THROWS_AS(Mask::allow(full({1, 1, 1, 2, 2}, 1, Dtype::i32)), Error);
  CHECK_THROWS_AS(Mask::allow(Tensor()), Error);
  CHECK(error_of([] { Mask::window(-1, 0); }) ==
        "mask: a window reaches 0 positions or more to each side, not -1 and 0");
  CHECK(error_of([] { Mask::window(0, -1); }) ==
        "mask: a window reaches 0 positions or more to each side, not 0 and -1");
  CHECK_THROWS_AS(Mask::padding(Tensor()), Error);
}

TEST_CASE("a mask that does not fit the scores says so") {
  const Mask padding = Mask::padding(full({2}, 1, Dtype::i32)), table = Mask::allow(full({2, 3}, 1, Dtype::i32));
  CHECK_NOTHROW(padding.check_fits(2, 4, 5, 6));
  CHECK_NOTHROW(table.check_fits(2, 4, 2, 3));
  CHECK(error_of([&] { (void)padding.length(2, 6); }) == "mask: has lengths for 2 batch rows, none for row 2");
  CHECK(error_of([&] { padding.check_fits(3, 4, 5, 6); }) == "mask: has lengths for 2 batch rows, there are 3");
  CHECK(error_of([&] { table.check_fits(1, 1, 3, 3); }) ==
        "mask: a table of shape [1, 1, 2, 3] does not fit scores of shape [1, 1, 3, 3]");
}

TEST_CASE("lengths end after the last id that is not padding") {
  CHECK(elements(lengths_of(Tensor::of<i32>({4, 3}, {5, 6, 0, 0, 0, 0, 5, 0, 7, 1, 2, 3}), 0)) == Numbers{2, 0, 3, 3});
  CHECK(error_of([] { lengths_of(arange(3), 0); }) == "ids: needs 2 axes, has shape [3]");
}

TEST_CASE("a window: query i of n sees positions i + m - n - before to i + m - n + after") {
  for (const auto& [before, after] : {std::pair<i64, i64>{2, 2}, {0, 3}, {4, 0}, {0, 0}, {99, 1}}) {
    const Mask mask = Mask::window(before, after), padded = mask & Mask::padding(Tensor::of<i32>({1}, {4}));
    for (const auto& [n, m] : {std::pair<i64, i64>{6, 6}, {2, 7}, {7, 3}}) {
      for (i64 i = 0; i < n; ++i) {
        const i64 position = i + m - n;
        for (i64 j = 0; j < m; ++j) {
          const bool expected = j >= position - before && j <= position + after;
          CHECK(mask.allowed(0, 0, i, j, n, m) == expected);
          CHECK(padded.allowed(0, 0, i, j, n, m) == (expected && j < 4));
        }
        const KeyRange keys = padded.range(0, i, n, m);
        CHECK(keys.first >= 0);
        CHECK(keys.first <= keys.limit);
        CHECK(keys.limit <= std::min<i64>(m, 4));
      }
    }
  }
  CHECK(Mask::window(0, 0).is_causal());
  CHECK_FALSE(Mask::window(2).allows_all());
  CHECK(Mask::window(i64{1} << 41).allows_all());
  CHECK_FALSE(Mask::window(2).has_table());
}

TEST_CASE("windows print, & keeps the narrower of two, and a negative reach is refused") {
  CHECK(text_of(Mask::window(3)) == "window(3, 3)");
  CHECK(text_of(Mask::causal() & Mask::window(3)) == "window(3, 0)");
  CHECK(text_of(Mask::window(3, 5) & Mask::window(4, 1) & Mask::padding(Tensor::of<i32>({1}, {2}))) ==
        "window(3, 1) & padding(2)");
  CHECK(text_of(Mask::window(i64{1} << 41, 3)) == "window(all, 3)");
  CHECK(text_of(Mask::window(4, i64{1} << 50)) == "window(4, all)");
  CHECK(text_of(Mask::window(i64{1} << 41, 0)) == "causal");
  CHECK(text_of(Mask::window(i64{1} << 41)) == "everything");
  CHECK(error_of([] { Mask::window(-1, 2); }) ==
        "mask: a window reaches 0 positions or more to each side, not -1 and 2");
}

TEST_CASE("global positions see everything and are seen by all, where causal, padding and other parts let them") {
  const Mask global = Mask::global(2);
  for (const auto& [n, m] : {std::pair<i64, i64>{6, 6}, {2, 7}, {1, 9}, {7, 3}, {9, 9}}) {
    for (i64 i = 0; i < n; ++i) {
      const i64 position = i + m - n;
      for (i64 j = 0; j < m; ++j) {
        const bool expected = (position >= 0 && position < 2) || j < 2;
        CHECK(global.allowed(0, 0, i, j, n, m) == expected);
        CHECK((global & Mask::causal()).allowed(0, 0, i, j, n, m) == (expected && j <= position));
        CHECK((global & Mask::global(5)).allowed(0, 0, i, j, n, m) == expected);
        CHECK((global & Mask::padding({1})).allowed(0, 0, i, j, n, m) == (expected && j < 1));
        CHECK((global & Mask::window(3)).allowed(0, 0, i, j, n, m) == (expected && std::abs(j - position) <= 3));
      }
    }
  }
  CHECK_FALSE(global.has_table());
  CHECK_FALSE(global.allows_all());
  CHECK(Mask::global(i64{1} << 41).allows_all());
  CHECK_FALSE(Mask::global(0).allowed(0, 0, 0, 0, 3, 3));
  CHECK(text_of(Mask::causal() & global) == "causal & global(2)");
  CHECK(error_of([] { Mask::global(-1); }) == "mask: there are 0 global positions or more, not -1");
}

namespace {

// Masks of every kind for a batch of 2, two heads and scores of n x m, joined by & and |.
std::vector<Mask> joined_masks(i64 n, i64 m) {
  Rng rng(3);
  const auto length = [&](i64 part) { return static_cast<i32>(m * part / 4); };
  const Mask table = Mask::allow(randint(0, 2, {2, 2, n, m}, rng)),
             keys = Mask::allow(randint(0, 2, {2, 1, 1, m}, rng)), queries = Mask::allow(randint(0, 2, {n, 1}, rng)),
             padding = Mask::padding({length(3), length(1)});
  return {Mask(),
          Mask::window(9, 2),
          padding,
          Mask::global(3),
          table,
          keys & queries,
          Mask::window(7) | Mask::global(3),
          Mask::causal() & padding & (Mask::window(7) | Mask::global(1) | table),
          (Mask::causal() & padding) | (Mask::window(0, 5) & Mask::padding({length(1), length(4)})),
          (table | queries) & (keys | Mask::window(3)) & Mask::global(70),
          (Mask::causal() | Mask::window(4, 20)) & (table | Mask::padding({0, length(2)}))};
}

}  // namespace

TEST_CASE("blocks of queries and keys say what each pair says") {
  for (const auto& [n, m] : {std::pair<i64, i64>{150, 150}, {1, 90}, {40, 200}, {150, 30}}) {
    for (const Mask& mask : joined_masks(n, m)) {
      INFO(mask);
      for (const auto& [begin, end] : {std::pair<i64, i64>{0, n}, {8, 130}, {n - 1, n}, {24, 90}, {128, 150}}) {
        if (begin >= n) continue;
        const i64 last = std::min({end, n, begin + MaskBlock::most_queries});
        for (i64 first = 0; first < m; first += 37) {
          const KeyRange keys{first, std::min(m, first + MaskBlock::most_keys)};
          for (i64 row = 0; row < 4; ++row) {
            const QuerySpan q{row / 2, row % 2, begin, last, n, m};
            MaskBlock block;
            const Seen seen = mask.see(q, keys, block);
            i64 pairs = 0, wrong = 0;
            for (i64 i = begin; i < last; ++i) {
              for (i64 j = keys.first; j < keys.limit; ++j) {
                const bool expected = mask.allowed(q.b, q.h, i, j, n, m);
                const auto at = static_cast<size_t>(i - begin);
                pairs += expected;
                wrong += seen == Seen::some &&
                         expected != ((block.words[at / 32][static_cast<size_t>(j - first)] >> at % 32 & 1U) != 0);
                wrong += expected && (j < mask.range(q).first || j >= mask.range(q).limit);
                wrong += expected && (j < mask.range(q.b, i, n, m).first || j >= mask.range(q.b, i, n, m).limit);
              }
            }
            const i64 all = q.count() * keys.count();
            CHECK(wrong == 0);
            CHECK(seen == (pairs == 0 ? Seen::nothing : pairs == all ? Seen::all : Seen::some));
          }
        }
      }
    }
  }
}

TEST_CASE("more queries or keys than a block has are refused") {
  const Mask table = Mask::allow(full({1, 1}, 1, Dtype::i32));
  MaskBlock block;
  CHECK(error_of([&] {
          table.see({0, 0, 0, 129, 200, 200}, {0, 64}, block);
        }) == "mask: a block has at most 128 queries and 64 keys, not 129 and 64");
  CHECK(error_of([&] {
          table.see({0, 0, 0, 128, 200, 200}, {0, 65}, block);
        }) == "mask: a block has at most 128 queries and 64 keys, not 128 and 65");
}

TEST_CASE("masks joined by & allow what both allow, and by | what one of them allows") {
  const i64 n = 5, m = 7;
  const std::vector<Mask> masks = joined_masks(n, m);
  for (const Mask& a : masks) {
    for (const Mask& b : masks) {
      for (i64 at = 0; at < 4 * n * m; ++at) {
        const auto allows = [&](const Mask& mask) {
          return mask.allowed(at / (2 * n * m), at / (n * m) % 2, at / m % n, at % m, n, m);
        };
        REQUIRE(allows(a & b) == (allows(a) && allows(b)));
        REQUIRE(allows(a | b) == (allows(a) || allows(b)));
        REQUIRE(allows((a | b) & b) == allows(b));
      }
    }
  }
}

TEST_CASE("| keeps what both hide: a later position, keys beyond the longer padding") {
  const Mask shorter = Mask::padding({1, 4}), longer = Mask::padding({3, 2});
  CHECK((shorter | longer).length(0, 9) == 3);
  CHECK((shorter | longer).length(1, 9) == 4);
  CHECK_FALSE((shorter | Mask::global(2)).has_padding());
  CHECK((Mask::window(3, 0) | (Mask::causal() & Mask::global(1))).is_causal());
  CHECK_FALSE((Mask::causal() | Mask::global(1)).is_causal());
  CHECK((Mask::window(3) | Mask::global(1)).has_table());
  CHECK_FALSE((Mask::window(3) | Mask::global(1)).allows_all());
  CHECK((Mask() | Mask::causal()).allows_all());
  CHECK(text_of(Mask::window(2) | Mask::window(5)) == "window(5, 5)");  // contains the other
  CHECK(error_of([&] { (void)(shorter | Mask::padding({3})); }) == "mask: paddings of 2 and 1 batch rows");
  CHECK(error_of([&] { (longer | Mask::global(1)).check_fits(3, 1, 4, 4); }) ==
        "mask: has lengths for 2 batch rows, there are 3");
  CHECK(error_of([] {
          (Mask::global(1) | Mask::allow(full({2, 3}, 0, Dtype::i32))).check_fits(1, 1, 3, 3);
        }) == "mask: a table of shape [1, 1, 2, 3] does not fit scores of shape [1, 1, 3, 3]");
}

TEST_CASE("alternatives print in parentheses, where they are not all") {
  const Mask either = Mask::window(64) | Mask::global(2);
  CHECK(text_of(either) == "window(64, 64) | global(2)");
  CHECK(text_of(either | Mask::causal()) == "window(64, 64) | global(2) | causal");
  CHECK(text_of(Mask::causal() & Mask::padding({3}) & either) == "causal & padding(3) & (window(64, 64) | global(2))");
}

TEST_CASE("the scores of a query become -infinity where they are hidden") {
  const Mask mask = Mask::allow(Tensor::of<i32>({2, 4}, {1, 0, 0, 1, 1, 1, 0, 1}));
  std::vector<double> row{5, 6, 7};
  mask.hide({0, 0, 1, 2, 2, 4}, {1, 4}, row.data());
  CHECK(row == std::vector<double>{5, -HUGE_VAL, 7});
  std::vector<float> scores(200, 1.F);
  (Mask::window(1) | Mask::global(70)).hide({0, 0, 150, 151, 203, 203}, {3, 203}, scores.data());
  for (i64 j = 3; j < 203; ++j)
    CHECK(scores[static_cast<size_t>(j - 3)] == (j < 70 || (j >= 149 && j <= 151) ? 1.F : -HUGE_VALF));
}

TEST_CASE("a table is packed the same way by any number of threads") {
  Rng rng(2);
  const Tensor table = randint(0, 2, {3, 300, 200}, rng);
  const int before = threads();
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    const Mask mask = Mask::allow(table);
    bool equal = true;
    for (i64 at = 0; at < table.count(); ++at)
      equal = equal && mask.allowed(at / 60000, 1, at / 200 % 300, at % 200, 300, 200) == (table.data<i32>()[at] != 0);
    CHECK(equal);
  }
  set_threads(before);
}

TEST_CASE("padding is moderate unless it holds NaN, infinity or huge numbers") {
  const Mask mask = Mask::padding(Tensor::of<i32>({2}, {3, 1}));
  for (const Dtype dtype : {f32, f64}) {
    const double huge = dtype == f32 ? 1e12 : 1e147;
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL, huge}) {
      for (i64 at = 0; at < 2 * 4 * 20; ++at) {
        Tensor x = full({2, 4, 20}, 1e11, dtype), place = x.reshape({160}).rows(at, at + 1);
        fill(place, bad);
        const bool behind = at >= 80 ? at >= 100 : at >= 60;
        CHECK(padding_is_moderate(x, mask) == !behind);
      }
    }
  }
  CHECK(padding_is_moderate(full({2, 1, 3}, INFINITY), Mask::padding(Tensor::of<i32>({2}, {1, 1}))));
  CHECK(padding_is_moderate(full({2, 4, 20}, 1.8e11, f32), mask));
  CHECK_FALSE(padding_is_moderate(full({2, 4, 20}, 1.9e11, f32), mask));
  CHECK(padding_is_moderate(full({2, 4, 20}, 1.3e146, f64), mask));
  CHECK_FALSE(padding_is_moderate(full({2, 4, 20}, 1.4e146, f64), mask));
  CHECK(error_of([&] {
          padding_is_moderate(zeros({3, 4, 2}), mask);
        }) == "mask: has lengths for 2 batch rows, there are 3");
}

TEST_CASE("a length beyond the keys there are is refused, wherever a mask is used") {
  const Mask mask = Mask::padding(Tensor::of<i32>({2}, {3, 5}));
  CHECK_NOTHROW(mask.check_fits(2, 1, 4, 5));
  CHECK(error_of([&] { mask.check_fits(2, 1, 4, 4); }) ==
        "mask: length 5 of batch row 1 is beyond the 4 keys there are");
  CHECK(error_of([&] { mask.check_padding_fits(2, 4); }) ==
        "mask: length 5 of batch row 1 is beyond the 4 keys there are");
  CHECK(error_of([&] {
          (void)padding_is_moderate(zeros({2, 4, 3}), mask);
        }) == "mask: length 5 of batch row 1 is beyond the 4 keys there are");
}

#if defined(__x86_64__)
TEST_CASE("padding is checked without denormal numbers, which are slow") {
  constexpr unsigned denormal_met = 0x2;  // stands in the register since an instruction met one
  const Mask mask = Mask::padding(Tensor::of<i32>({1}, {1}));
  for (const Dtype dtype : {f32, f64}) {
    Tensor x = zeros({1, 3, 20}, dtype);
    if (dtype == f32)
      std::fill_n(x.write<float>(), x.count(), std::numeric_limits<float>::denorm_min());
    else
      std::fill_n(x.write<double>(), x.count(), std::numeric_limits<double>::denorm_min());
    _mm_setcsr(_mm_getcsr() & ~denormal_met);
    CHECK(padding_is_moderate(x, mask));
    CHECK((_mm_getcsr() & denormal_met) == 0);
  }
}
#endif
