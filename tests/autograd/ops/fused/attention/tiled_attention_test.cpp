// Chapter 8. Attention in tiles against the textbook form: many tiles of keys and queries, short ones among them.
#include "autograd/ops/fused/attention/tiled_attention.h"

#include "core/machine/memory.h"
#include "tests/autograd/ops/textbook_attention.h"

using namespace orrery;
using namespace orrery::small;

namespace {

constexpr Draw tiled_draw{.seed = 3, .step = 7, .micro = 1, .index = 4};
constexpr TileSizes tiny{.queries = 8, .keys = 5};
constexpr i64 long_enough = 600;  // keys for which `packed_attention` goes by in tiles of the usual size

Variable tiled(const Variables& x, const AttentionSizes& s, const Mask& mask, double p, TileSizes tile = tiny) {
  return x.size() == 1 ? tiled_attention(x[0], {s.h, s.d_k, s.d_v}, mask, {.p = p, .draw = tiled_draw}, tile)
                       : tiled_attention(x[0], x[1], {s.h, s.d_k, s.d_v}, mask, {.p = p, .draw = tiled_draw}, tile);
}

Variable chosen(const Variables& x, const AttentionSizes& s, const Mask& mask, double p) {
  return x.size() == 1 ? packed_attention(x[0], {s.h, s.d_k, s.d_v}, mask, {.p = p, .draw = tiled_draw})
                       : packed_attention(x[0], x[1], {s.h, s.d_k, s.d_v}, mask, {.p = p, .draw = tiled_draw});
}

void check_tiled(const AttentionSizes& s, const Mask& mask, double p, const std::vector<Shape>& shapes) {
  INFO(s, ", ", mask, ", p ", p);
  check_fused([&](const Variables& x) { return tiled(x, s, mask, p); },
              [&](const Variables& x) { return textbook_attention(x, s, mask, p, tiled_draw); }, normals(shapes));
}

// Value and gradients of the form `packed_attention` chooses, in f64 and in f32.
void check_long(const AttentionSizes& s, const Mask& mask, double p, const std::vector<Shape>& shapes) {
  INFO(s, ", ", mask, ", p ", p);
  const Function fused = [&](const Variables& x) { return chosen(x, s, mask, p); };
  const std::vector<Tensor> inputs = normals(shapes), single = converted(inputs, f32);
  const Function textbook = [&](const Variables& x) { return textbook_attention(x, s, mask, p, tiled_draw); };
  const std::vector<Tensor> expected = value_then_gradients(textbook, converted(single, f64));
  CHECK(distance(value_then_gradients(fused, converted(single, f64)), expected) <= 1e-12);
  CHECK(distance(converted(value_then_gradients(fused, single), f64), expected) <= 1e-5);
}

}  // namespace

TEST_CASE("self-attention in tiles equals the textbook form under every mask, with dropout and without") {
  for (const AttentionSizes& s : {AttentionSizes{2, 3, 5, 5, 4, 4}, {3, 2, 17, 17, 5, 7}, {1, 2, 40, 40, 16, 3}}) {
    for (const Mask& mask : attention_masks(s)) {
      for (const double p : {0.0, 0.3}) check_tiled(s, mask, p, s.self());
    }
  }
}

TEST_CASE("cross-attention in tiles equals the textbook form under every mask, with dropout and without") {
  for (const AttentionSizes& s : {AttentionSizes{1, 2, 3, 8, 2, 1},
                                  {2, 3, 5, 9, 4, 2},
                                  {3, 2, 19, 6, 5, 7},
                                  {2, 1, 33, 70, 8, 16},
                                  {1, 7, 3, 90, 2, 3}}) {
    for (const Mask& mask : attention_masks(s)) {
      for (const double p : {0.0, 0.3}) check_tiled(s, mask, p, s.cross());
    }
  }
}

TEST_CASE("long sequences go by in tiles: the last of keys and queries whole, short, and a single one") {
  for (const i64 n : {i64{513}, i64{768}, long_enough}) {
    const AttentionSizes s{1, 2, n, n, 5, 3};
    check_long(s, Mask::causal(), 0, s.self());
    check_long(s, Mask::causal(), 0.2, s.self());
    check_long(s, Mask::causal() & Mask::window(100), 0.2, s.self());
    check_long(s, Mask::window(30, 300), 0, s.self());
  }
  const AttentionSizes s{2, 1, long_enough, long_enough, 3, 4}, few{2, 2, 30, 1025, 4, 3}, many{1, 1, 1100, 530, 2, 3};
  check_long(s, Mask::padding({300, 557}), 0.2, s.self());
  check_long(few, Mask::causal() & Mask::padding({900, 0}), 0.2, few.cross());
  check_long(many, Mask::causal(), 0, many.cross());
}

TEST_CASE("attention over a long sequence under a table of what may be seen equals the textbook form") {
  const AttentionSizes s{1, 1, 140, long_enough, 3, 2};
  check_long(s, sparse_table(s), 0.2, s.cross());
}

TEST_CASE("in tiles, a window or global positions give what a table of the same pairs gives") {
  const AttentionSizes s{1, 1, 300, 300, 3, 2}, few{1, 1, 70, 900, 2, 3};
  for (const Mask& mask : sparse_masks(s)) {
    const Mask table = as_table(mask, s);
    const Function textbook = [&](const Variables& x) { return textbook_attention(x, s, table, 0.2, tiled_draw); };
    const std::vector<Tensor> x = normals(s.self()), expected = value_then_gradients(textbook, x);
    for (const TileSizes tile : {TileSizes{}, TileSizes{40, 100}}) {
      INFO(mask.has_table(), tile.keys);
      CHECK(distance(value_then_gradients([&](const Variables& v) { return tiled(v, s, mask, 0.2, tile); }, x),
                     expected) <= 1e-12);
    }
  }
  for (const Mask& mask : sparse_masks(few)) check_long(few, mask, 0.2, few.cross());
}

TEST_CASE("both forms, and all sizes of tiles, drop the same weights") {
  const AttentionSizes s{2, 2, 150, 130, 3, 4};
  const std::vector<Tensor> x = normals(s.cross());
  const std::vector<Tensor> expected =
      value_then_gradients([&](const Variables& v) { return chosen(v, s, Mask::causal(), 0.4); }, x);
  for (const TileSizes tile : {tiny, TileSizes{128, 1}, TileSizes{16, 300}, TileSizes{}}) {
    CHECK(distance(value_then_gradients([&](const Variables& v) { return tiled(v, s, Mask::causal(), 0.4, tile); }, x),
                   expected) <= 1e-12);
  }
}

TEST_CASE("a query's value does not depend on the tile of queries it is in") {
  const AttentionSizes s{1, 2, 200, 37, 6, 5};
  const std::vector<Tensor> x = normals(s.cross());
  const auto rows = [&](i64 begin, i64 end) {
    return tiled({constant(slice(x[0], 1, begin, end)), constant(x[1])}, s, Mask(), 0).value();
  };
  const Tensor all = rows(0, 200);
  CHECK(same_bits(rows(0, 7), slice(all, 1, 0, 7)));
  CHECK(same_bits(rows(120, 140), slice(all, 1, 120, 140)));
}

TEST_CASE("promise 13: what stands beyond a padding length changes no bit in tiles either, not even NaN") {
  const AttentionSizes s{2, 3, 9, 16, 4, 2};
  const Mask mask = Mask::padding({7, 16});
  const i64 columns = s.h * (s.d_k + s.d_v);
  for (const double p : {0.0, 0.3}) {
    const Function f = [&](const Variables& x) { return tiled(x, s, mask, p); };
    const std::vector<Tensor> clean = normals(s.cross());
    const std::vector<Tensor> expected = value_then_gradients(f, clean);
    for (i64 i = 7 * columns; i < 16 * columns; ++i) CHECK(expected[2].at(i) == 0.0);
    for (const double poison : {std::nan(""), std::numeric_limits<double>::infinity(), 1e30}) {
      const std::vector<Tensor> dirty{clean[0], clean[1].clone()};
      Tensor kv = dirty[1];
      std::fill_n(kv.write<double>() + 7 * columns, 9 * columns, poison);
      const std::vector<Tensor> got = value_then_gradients(f, dirty);
      for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
    }
  }
}

TEST_CASE("promise 13: 1e30 hidden by a table changes no bit of value or gradients in tiles") {
  const AttentionSizes s{1, 2, 6, 12, 3, 2};
  std::vector<i32> all_but_one(6 * 12, 1);
  for (size_t i = 0; i < 6; ++i) all_but_one[i * 12 + 7] = 0;
  const Mask mask = Mask::allow(Tensor::of<i32>({6, 12}, all_but_one));
  const std::vector<Tensor> quiet = normals(s.cross()), loud{quiet[0], quiet[1].clone()};
  Tensor kv = loud[1];
  const i64 columns = kv.size(2);
  for (i64 c = 0; c < columns; ++c) kv.write<double>()[7 * columns + c] = c < s.h * s.d_k ? -1e30 : 1e30;
  const Function f = [&](const Variables& x) { return tiled(x, s, mask, 0.3); };
  const std::vector<Tensor> expected = value_then_gradients(f, quiet), got = value_then_gradients(f, loud);
  for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
}

TEST_CASE("promise 13: a query that may see nothing gives zeros and zero gradients in tiles") {
  const AttentionSizes s{2, 2, 19, 19, 3, 4};
  const std::vector<Tensor> got = value_then_gradients(
      [&](const Variables& x) {
        return tiled(x, s, Mask::padding({0, 19}), 0.3);
      },
      normals(s.self()));
  for (const Tensor& x : got) {
    for (i64 i = 0; i < x.count(); ++i) CHECK(std::isfinite(x.at(i)));
    for (i64 i = 0; i < x.count() / 2; ++i) CHECK(x.at(i) == 0.0);
  }
}

TEST_CASE("promise 14: scores of 1e4, growing and falling from tile to tile, are softmaxed like small ones") {
  const AttentionSizes s{1, 1, 3, 23, 2, 2};
  std::vector<Tensor> x = normals(s.cross());
  for (i64 i = 0; i < x[0].count(); ++i) x[0].write<double>()[i] *= 1e4;
  const Function f = [&](const Variables& v) { return tiled(v, s, Mask(), 0); };
  const Function g = [&](const Variables& v) { return textbook_attention(v, s, Mask(), 0, tiled_draw); };
  CHECK(distance(value_then_gradients(f, x), value_then_gradients(g, x)) <= 1e-10);
}

TEST_CASE("promise 14: in f32, with scores of thousands, the weights that backward computes again add up to 1") {
  // With dO the identity, dV[j, i] is the weight of key j for query i. The first column makes every score 5,000 larger:
  // there the numbers of f32 lie 5e-4 apart, and a normalizer that is kept as a score is rounded to one of them.
  constexpr i64 n = 8, m = long_enough, d_k = 16;
  Tensor q_numbers = normal({1, n, d_k}, 3, f32), kv_numbers = normal({1, m, d_k + n}, 4, f32);
  for (i64 i = 0; i < n; ++i) q_numbers.write<float>()[i * d_k] = 100;
  for (i64 j = 0; j < m; ++j) kv_numbers.write<float>()[j * (d_k + n)] = 200;
  const Variable q = parameter(q_numbers), kv = parameter(kv_numbers);
  Tensor identity = zeros({1, n, n});
  for (i64 i = 0; i < n; ++i) identity.write<float>()[i * n + i] = 1;
  backward(tiled_attention(q, kv, {1, d_k, n}, Mask(), {}, tiny), identity);
  const Tensor weights = sum(slice(kv.gradient(), 2, d_k, d_k + n), {1});
  for (i64 i = 0; i < n; ++i) CHECK(std::fabs(weights.at(i) - 1) <= 2e-6);
}

TEST_CASE("what a causal mask hides from a whole tile is skipped, forward and backward") {
  // Queries 0 to 15 stand in two tiles that see no key after 15: computed and then hidden, NaN there would show.
  const AttentionSizes s{1, 1, 24, 24, 4, 4};
  const std::vector<Tensor> x = normals(s.cross());
  Tensor behind = x[1].clone(), dy = normal({1, 24, 4}, 5);
  std::fill_n(behind.write<double>() + 16 * 8, 8 * 8, std::nan(""));
  std::fill_n(dy.write<double>() + 16 * 4, 8 * 4, 0.0);
  const auto seen = [&](const Tensor& kv) {
    const Variable q = parameter(x[0].clone());
    const Variable y = tiled({q, parameter(kv)}, s, Mask::causal(), 0, {.queries = 8, .keys = 8});
    backward(y, dy);
    return std::array{slice(y.value(), 1, 0, 16), slice(q.gradient(), 1, 0, 16)};
  };
  const auto expected = seen(x[1]), got = seen(behind);
  CHECK(same_bits(got[0], expected[0]));
  CHECK(same_bits(got[1], expected[1]));
}

TEST_CASE("what a window hides from a whole tile is skipped, though later queries see less") {
  // Queries 16 to 23 stand in a tile that sees keys 12 to 23: NaN before them would show.
  const AttentionSizes s{1, 1, 24, 24, 4, 4};
  const std::vector<Tensor> x = normals(s.cross());
  const Tensor dy = normal({1, 8, 4}, 5);
  Tensor before = x[1].clone();
  std::fill_n(before.write<double>(), 12 * 8, std::nan(""));
  const auto check_form = [&](const auto& form) {
    const auto seen = [&](const Tensor& kv) {
      const Variable q = parameter(slice(x[0], 1, 16, 24).clone());
      const Variable y = form(Variables{q, parameter(kv)}, AttentionSizes{1, 1, 8, 24, 4, 4});
      backward(y, dy);
      return std::array{y.value(), q.gradient()};
    };
    const auto expected = seen(x[1]), got = seen(before);
    CHECK(same_bits(got[0], expected[0]));
    CHECK(same_bits(got[1], expected[1]));
  };
  const Mask window = Mask::causal() & Mask::window(4);
  check_form([&](const Variables& v, const AttentionSizes& sizes) {
    return tiled(v, sizes, window, 0, {.queries = 8, .keys = 8});
  });
  check_form([&](const Variables& v, const AttentionSizes& sizes) { return chosen(v, sizes, window, 0); });
}

TEST_CASE("no batch row, no query, no key: tiles of nothing") {
  for (const AttentionSizes& s : {AttentionSizes{0, 2, 3, 3, 2, 2}, {2, 2, 0, 3, 2, 2}, {2, 2, 3, 0, 2, 2}}) {
    const std::vector<Tensor> got =
        value_then_gradients([&](const Variables& x) { return tiled(x, s, Mask(), 0.3); }, normals(s.cross()));
    CHECK(got[0].shape() == Shape{s.B, s.n, s.h * s.d_v});
    for (const Tensor& x : got) CHECK(same_bits(x, zeros(x.shape(), f64)));
  }
}

TEST_CASE("tiles compute only the gradients that are wanted") {
  const AttentionSizes s{2, 2, 15, 17, 3, 2};
  const std::vector<Tensor> x = normals(s.cross());
  const Function f = [&](const Variables& v) { return tiled(v, s, Mask::causal(), 0.3); };
  const std::vector<Tensor> all = value_then_gradients(f, x);
  const Function of_q = [&](const Variables& v) { return f({v[0], constant(x[1])}); };
  const Function of_kv = [&](const Variables& v) { return f({constant(x[0]), v[0]}); };
  CHECK(same_bits(value_then_gradients(of_q, {x[0]})[1], all[1]));
  CHECK(same_bits(value_then_gradients(of_kv, {x[1]})[1], all[2]));
}

TEST_CASE("errors of attention in tiles name the rule") {
  const Variable qkv = constant(zeros({1, long_enough, 16})), kv = constant(zeros({2, 600, 10}));
  const auto error = [](const auto& f) { return error_of([&] { (void)f(); }); };
  CHECK(error([&] {
          return packed_attention(qkv, {2, 3, 3}, Mask());
        }).starts_with("packed_attention: 2 heads of 3 and 3 need 18 columns, got [1, 600, 16]"));
  CHECK(contains(error([&] {
                   return packed_attention(constant(zeros({1, 3, 6})), kv, {2, 3, 2}, Mask());
                 }),
                 "batch sizes differ (1 and 2)"));
  for (const TileSizes tile :
       {TileSizes{0, 8}, TileSizes{4, 8}, TileSizes{136, 8}, TileSizes{8, 0}, TileSizes{8, 513}}) {
    CHECK(contains(error([&] { return tiled_attention(qkv, {2, 3, 2}, Mask(), {}, tile); }), "no tiles of"));
  }
}

TEST_CASE("attention in tiles has the same bits for any number of threads") {
  const Mask mask = Mask::causal() & Mask::padding({37, 20, 0});
  CHECK(thread_proof(
      [&](const auto& x) {
        return tiled_attention(x[0], {2, 3, 4}, Mask::window(5) | Mask::global(2), {.p = 0.1, .draw = tiled_draw},
                               tiny);
      },
      {{2, 100, 20}}));
  CHECK(thread_proof(
      [&](const auto& x) {
        return tiled_attention(x[0], {4, 9, 11}, mask, {.p = 0.1, .draw = tiled_draw}, tiny);
      },
      {{3, 37, 4 * 29}}));
  CHECK(thread_proof(
      [&](const auto& x) {
        return tiled_attention(x[0], x[1], {1, 5, 4}, Mask::padding({60}), {.p = 0.1, .draw = tiled_draw}, tiny);
      },
      {{1, 50, 5}, {1, 60, 9}}));
  CHECK(thread_proof(
      [&](const auto& x) {
        return packed_attention(x[0], {1, 3, 4}, Mask::causal(), {.p = 0.1, .draw = tiled_draw});
      },
      {{1, long_enough, 10}}));
}

TEST_CASE("long attention holds no scores: memory grows with the length, not with its square") {
  const auto peak = [](i64 T) {
    const Variable qkv = parameter(normal({1, T, 3 * 8}, 5, f32));
    reset_peak();
    const i64 before = memory_counters().live_bytes;
    const Variable y = packed_attention(qkv, {1, 8, 8}, Mask::causal());
    backward(y, full(y.shape(), 1.0));
    return static_cast<double>(memory_counters().peak_bytes - before);
  };
  if (!small::counts_memory()) return;
  const double shorter = peak(1024), longer = peak(2048);
  CHECK(longer < 2.2 * shorter);
}
