// Chapter 8. Attention on packed products, whole and in tiles, against the textbook form: its heads split out, attended
// and joined again, one step after another.
#include "autograd/ops/fused/attention/scores.h"
#include "autograd/ops/fused/attention/tiled_attention.h"
#include "core/mask.h"
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;
using kernels::query_tile;

namespace {

constexpr Draw heads_draw{.seed = 3, .step = 7, .micro = 1, .index = 4};
constexpr TileSizes tiny{.queries = 8, .keys = 5};
constexpr i64 long_enough = 600;  // keys for which `packed_attention` goes by in tiles of the usual size

struct AttentionSizes {
  i64 B, h, n, m, d_k, d_v;
  std::vector<Shape> self() const { return {{B, n, h * (2 * d_k + d_v)}}; }
  std::vector<Shape> cross() const { return {{B, n, h * d_k}, {B, m, h * (d_k + d_v)}}; }
};

// Self-attention of {qkv}, or cross-attention of {q, kv}; a bias by distance comes last if there is one.
struct HeadsCall {
  AttentionSizes s;
  Mask mask{};
  double p = 0;
  bool biased = false;
  TileSizes tile = tiny;

  AttentionWeightOptions options(const Variables& x) const {
    return {.bias = biased ? x.back() : Variable(), .p = p, .draw = heads_draw};
  }
  bool is_self(const Variables& x) const { return x.size() == (biased ? 2u : 1u); }
  HeadSizes heads() const { return {s.h, s.d_k, s.d_v}; }
  std::vector<Shape> with_bias(std::vector<Shape> shapes) const {
    if (biased) shapes.push_back({s.h, s.n + s.m - 1});
    return shapes;
  }
};
std::ostream& operator<<(std::ostream& out, const HeadsCall& c) {
  return out << "B " << c.s.B << " h " << c.s.h << " n " << c.s.n << " m " << c.s.m << " d_k " << c.s.d_k << " d_v "
             << c.s.d_v << ", " << (c.mask.has_table() ? "a table" : text_of(c.mask)) << ", p " << c.p << ", bias "
             << c.biased << ", tile " << c.tile.queries << " x " << c.tile.keys;
}

using Form = Variable (*)(const Variables& x, const HeadsCall& c);

Variable packed_form(const Variables& x, const HeadsCall& c) {
  return c.is_self(x) ? packed_attention(x[0], c.heads(), c.mask, c.options(x))
                      : packed_attention(x[0], x[1], c.heads(), c.mask, c.options(x));
}
Variable tiled_form(const Variables& x, const HeadsCall& c) {
  return c.is_self(x) ? tiled_attention(x[0], c.heads(), c.mask, c.options(x), c.tile)
                      : tiled_attention(x[0], x[1], c.heads(), c.mask, c.options(x), c.tile);
}

// Columns from `first` on as heads: [B, length, ...] to [B, h, length, d].
Variable split_heads(const Variable& packed, i64 first, i64 h, i64 d) {
  const Variable part = slice(packed, 2, first, first + h * d);
  return permute(reshape(part, {part.size(0), part.size(1), h, d}), {0, 2, 1, 3});
}
Variable textbook_form(const Variables& x, const HeadsCall& c) {
  const auto& [B, h, n, m, d_k, d_v] = c.s;
  const Variable &q = x[0], &kv = c.is_self(x) ? x[0] : x[1];
  const i64 k_column = c.is_self(x) ? h * d_k : 0;
  const Variable Q = split_heads(q, 0, h, d_k), K = split_heads(kv, k_column, h, d_k),
                 V = split_heads(kv, k_column + h * d_k, h, d_v);
  const Variable y = attention(Q, K, V, c.mask, c.options(x)).output;
  return reshape(permute(y, {0, 2, 1, 3}), {q.size(0), q.size(1), h * d_v});
}

constexpr Form fused_forms[] = {packed_form, tiled_form}, all_forms[] = {packed_form, tiled_form, textbook_form};

Function of(Form form, const HeadsCall& c) {
  return [=](const Variables& x) { return form(x, c); };
}
std::vector<Tensor> results(Form form, const HeadsCall& c, const std::vector<Tensor>& x) {
  return value_then_gradients(of(form, c), x);
}
bool equal_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}
// Elements from position `begin` on to `end` of batch row 0, all set to `value`.
Tensor with_positions(const Tensor& x, i64 begin, i64 end, double value) {
  Tensor changed = x.clone(), part = changed.reshape({x.size(0) * x.size(1), x.size(2)}).rows(begin, end);
  fill(part, value);
  return changed;
}

// A table for every batch row and head, in which every fourth query sees nothing.
Mask sparse_table(const AttentionSizes& s) {
  Rng rng(8);
  Tensor table = randint(0, 2, {s.B, s.h, s.n, s.m}, rng);
  for (i64 row = 0; row < s.B * s.h * s.n; row += 4) std::fill_n(table.write<i32>() + row * s.m, s.m, 0);
  return Mask::allow(table);
}
// Every kind of mask, and all of them together.
std::vector<Mask> attention_masks(const AttentionSizes& s) {
  std::vector<i32> shorter, none(static_cast<size_t>(s.B), 0);
  for (i64 b = 0; b < s.B; ++b) shorter.push_back(static_cast<i32>(s.m * (b + 1) / (s.B + 1)));
  return {Mask(),
          Mask::causal(),
          Mask::padding(shorter),
          Mask::padding(none),
          sparse_table(s),
          Mask::causal() & Mask::padding(shorter) & sparse_table(s),
          Mask::window(2, 3),
          Mask::window(3) & Mask::causal() & Mask::padding(shorter),
          Mask::window(0, 4) & sparse_table(s),
          Mask::window(2, 1) | Mask::global(2),
          Mask::causal() & Mask::padding(shorter) & (Mask::window(3) | Mask::global(1) | sparse_table(s))};
}
// The same rule as a table alone.
Mask as_table(const Mask& mask, const AttentionSizes& s) {
  Tensor table = Tensor::empty({s.B, s.h, s.n, s.m}, Dtype::i32);
  for (i64 at = 0; at < table.count(); ++at) {
    const i64 row = at / s.m;
    table.write<i32>()[at] = mask.allowed(row / (s.h * s.n), row / s.n % s.h, row % s.n, at % s.m, s.n, s.m) ? 1 : 0;
  }
  return Mask::allow(table);
}
// Rules for long sequences that hide whole blocks of keys, in the middle as well.
std::vector<Mask> sparse_masks(const AttentionSizes& s) {
  const std::vector<i32> shorter(static_cast<size_t>(s.B), static_cast<i32>(s.m - 30));
  const Mask longformer = Mask::window(20) | Mask::global(2);
  return {longformer, Mask::causal() & longformer & Mask::padding(shorter),
          Mask::window(10) | (Mask::global(140) & sparse_table(s)), as_table(longformer, s)};
}

void check_form(Form form, const HeadsCall& c, const std::vector<Shape>& shapes) {
  INFO(c);
  check_fused(of(form, c), of(textbook_form, c), normals(c.with_bias(shapes)));
}
void check_forms(const HeadsCall& c, const std::vector<Shape>& shapes) {
  for (const Form form : fused_forms) check_form(form, c, shapes);
}
// Value and gradients of the form that `packed_attention` chooses, in f64 and in f32.
void check_long(const HeadsCall& c, const std::vector<Shape>& shapes) {
  INFO(c);
  const std::vector<Tensor> single = converted(normals(c.with_bias(shapes)), f32), exact = converted(single, f64);
  const std::vector<Tensor> expected = results(textbook_form, c, exact);
  CHECK(distance(results(packed_form, c, exact), expected) <= 1e-12);
  CHECK(distance(converted(results(packed_form, c, single), f64), expected) <= 1e-5);
}

}  // namespace

TEST_CASE("fused attention equals the textbook form: self and cross, under every mask, with dropout and without") {
  for (const AttentionSizes& s :
       {AttentionSizes{1, 1, 1, 1, 1, 1}, {2, 3, 5, 5, 4, 4}, {3, 2, 17, 17, 5, 7}, {1, 2, 40, 40, 16, 3}})
    for (const Mask& mask : attention_masks(s))
      for (const double p : {0.0, 0.3}) check_forms({s, mask, p}, s.self());
  for (const AttentionSizes& s : {AttentionSizes{1, 1, 1, 3, 1, 1},
                                  {1, 2, 3, 8, 2, 1},
                                  {2, 3, 5, 9, 4, 2},
                                  {3, 2, 19, 6, 5, 7},
                                  {2, 1, 33, 70, 8, 16},
                                  {1, 7, 3, 90, 2, 3}})
    for (const Mask& mask : attention_masks(s))
      for (const double p : {0.0, 0.3}) check_forms({s, mask, p}, s.cross());
  const AttentionSizes many_heads{13, 11, 3, 3, 2, 2};  // more than groups of scratch memory
  check_forms({many_heads, Mask::causal(), 0.3}, many_heads.self());
}

TEST_CASE("a bias by distance: both fused forms equal the textbook form") {
  for (const AttentionSizes& s : {AttentionSizes{1, 1, 1, 1, 1, 1}, {2, 3, 5, 5, 4, 4}, {3, 2, 17, 17, 5, 7}})
    for (const Mask& mask : attention_masks(s)) check_forms({s, mask, 0.3, true}, s.self());
  for (const AttentionSizes& s : {AttentionSizes{1, 2, 3, 8, 2, 1}, {2, 3, 19, 6, 4, 2}})
    for (const Mask& mask : attention_masks(s)) check_forms({s, mask, 0, true}, s.cross());
  const AttentionSizes s{1, 2, 150, 150, 3, 2}, long_one{1, 1, 140, long_enough, 3, 2};
  check_forms({s, Mask::causal() & Mask::window(20), 0.2, true}, s.self());
  check_forms({long_one, Mask(), 0, true}, long_one.cross());  // packed_attention goes by in tiles
}

TEST_CASE("a bias for each pair: as if the scores had it, whatever axes repeat") {
  const AttentionSizes s{2, 3, 4, 5, 2, 3};
  const HeadsCall c{s, Mask::causal(), 0, true};
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 3, 4, 5}, Shape{2, 1, 4, 5}, Shape{1, 1, 4, 5}}) {
    std::vector<Shape> shapes = s.cross();
    shapes.push_back(shape);
    const auto expected = [&](const Variables& x) {
      const Variable Q = split_heads(x[0], 0, 3, 2), K = split_heads(x[1], 0, 3, 2), V = split_heads(x[1], 6, 3, 3);
      const Variable scores = matmul(Q, K, Trans::b) * (1 / std::sqrt(2.0)) + x[2];
      const Variable y = matmul(masked_softmax(scores, Mask::causal()), V);
      return reshape(permute(y, {0, 2, 1, 3}), {2, 4, 9});
    };
    check_fused(of(textbook_form, c), expected, normals(shapes));
  }
}

TEST_CASE("several tiles of queries: the last one holds one query, a part of a tile, or a whole tile") {
  for (const i64 n : {query_tile + 1, 2 * query_tile, 2 * query_tile + 44}) {
    const AttentionSizes s{1, 2, n, n, 5, 3}, other{2, 1, n, 30, 3, 5};
    for (const Mask& mask :
         {Mask::padding({static_cast<i32>(n - 3)}), Mask::causal() & Mask::window(30), Mask::window(9, 140)})
      check_form(packed_form, {s, mask, 0.2}, s.self());
    check_form(packed_form, {other}, other.cross());
    check_form(packed_form, {other, Mask::causal() & Mask::padding({30, 11}), 0.2}, other.cross());
  }
  const AttentionSizes s{1, 2, query_tile + 7, query_tile + 7, 3, 2};
  check_form(packed_form, {s, sparse_table(s), 0.2}, s.self());
}

TEST_CASE("long sequences go by in tiles: the last of keys and queries whole, short, and a single one") {
  for (const i64 n : {i64{513}, i64{768}, long_enough}) {
    const AttentionSizes s{1, 2, n, n, 5, 3};
    check_long({s, Mask::causal(), 0.2}, s.self());
    check_long({s, Mask::causal() & Mask::window(100), 0.2}, s.self());
    check_long({s, Mask::window(30, 300)}, s.self());
  }
  const AttentionSizes s{2, 1, long_enough, long_enough, 3, 4}, few{2, 2, 30, 1025, 4, 3}, many{1, 1, 1100, 530, 2, 3},
      table{1, 1, 140, long_enough, 3, 2};
  check_long({s, Mask::padding({300, 557}), 0.2}, s.self());
  check_long({few, Mask::causal() & Mask::padding({900, 0}), 0.2}, few.cross());
  check_long({many, Mask::causal()}, many.cross());
  check_long({table, sparse_table(table), 0.2}, table.cross());
}

TEST_CASE("a window or global positions give what a table of the same pairs gives") {
  for (const AttentionSizes& s : {AttentionSizes{1, 1, 300, 300, 3, 2}, {2, 1, 20, 400, 3, 2}}) {
    const std::vector<Tensor> x = normals(s.n == s.m ? s.self() : s.cross());
    for (const Mask& mask : sparse_masks(s)) {
      const std::vector<Tensor> expected = results(textbook_form, {s, as_table(mask, s), 0.2}, x);
      CHECK(distance(results(packed_form, {s, mask, 0.2}, x), expected) <= 1e-12);
      for (const TileSizes tile : {TileSizes{}, TileSizes{40, 100}}) {
        INFO(mask.has_table(), tile.keys);
        CHECK(distance(results(tiled_form, {s, mask, 0.2, false, tile}, x), expected) <= 1e-12);
      }
    }
  }
  const AttentionSizes few{1, 1, 70, 900, 2, 3};
  for (const Mask& mask : sparse_masks(few)) check_long({few, mask, 0.2}, few.cross());
}

TEST_CASE("both forms, and all sizes of tiles, drop the same weights") {
  const AttentionSizes s{2, 2, 150, 130, 3, 4};
  const std::vector<Tensor> x = normals(s.cross());
  const std::vector<Tensor> expected = results(packed_form, {s, Mask::causal(), 0.4}, x);
  for (const TileSizes tile : {tiny, TileSizes{128, 1}, TileSizes{16, 300}, TileSizes{}})
    CHECK(distance(results(tiled_form, {s, Mask::causal(), 0.4, false, tile}, x), expected) <= 1e-12);
}

TEST_CASE("what a query sees does not depend on the tile it is in") {
  const AttentionSizes s{1, 2, 200, 37, 6, 5};
  const std::vector<Tensor> x = normals(s.cross());
  for (const Form form : fused_forms) {
    const auto rows = [&](i64 begin, i64 end) {
      return form({constant(slice(x[0], 1, begin, end)), constant(x[1])}, {s}).value();
    };
    const Tensor all = rows(0, 200);
    for (const auto& [begin, end] : {std::pair<i64, i64>{0, 7}, {120, 140}})
      CHECK(distance({rows(begin, end)}, {slice(all, 1, begin, end)}) <= (form == tiled_form ? 0 : 1e-15));
  }
}

TEST_CASE("NaN in keys that no query of a tile may see reaches nothing: such blocks and tiles are skipped") {
  const auto check_skipped = [](Form form, const HeadsCall& c, i64 begin, i64 end) {
    const std::vector<Tensor> x = normals(c.s.cross()), dirty{x[0], with_positions(x[1], begin, end, std::nan(""))};
    CHECK(equal_bits(results(form, c, dirty), results(form, c, x)));
  };
  const AttentionSizes s{1, 1, 8, 400, 3, 2}, window{1, 1, 8, 24, 4, 4};
  const Mask longformer = Mask::window(20) | Mask::global(2);
  for (const Form form : fused_forms) {
    for (const Mask& mask : {longformer, as_table(longformer, s)}) check_skipped(form, {s, mask, 0.3}, 64, 256);
    // Queries 16 to 23 see keys 12 to 23, though later ones see less.
    check_skipped(form, {window, Mask::causal() & Mask::window(4), 0, false, {8, 8}}, 0, 12);
  }
  // The first two of three tiles of queries see no key after 15: computed and then hidden, NaN there would show.
  const AttentionSizes causal{1, 1, 24, 24, 4, 4};
  const std::vector<Tensor> x = normals(causal.cross());
  const Tensor dy = with_positions(normal({1, 24, 4}, 5), 16, 24, 0);
  const auto seen = [&](const Tensor& kv) {
    const Variable q = parameter(x[0].clone());
    const Variable y = tiled_form({q, parameter(kv)}, {causal, Mask::causal(), 0, false, {8, 8}});
    backward(y, dy);
    return std::vector<Tensor>{slice(y.value(), 1, 0, 16), slice(q.gradient(), 1, 0, 16)};
  };
  CHECK(equal_bits(seen(with_positions(x[1], 16, 24, std::nan(""))), seen(x[1].clone())));
}

TEST_CASE("promise 13: what stands beyond a padding length changes no bit in any form, not even NaN") {
  const AttentionSizes s{2, 3, 9, 16, 4, 2}, own{2, 2, 6, 6, 3, 4};
  for (const Form form : all_forms) {
    for (const double p : {0.0, 0.3}) {
      const HeadsCall c{s, Mask::padding({7, 16}), p};
      const std::vector<Tensor> clean = normals(s.cross()), expected = results(form, c, clean);
      CHECK(sum_of_squares(slice(expected[2].rows(0, 1), 1, 7)) == 0);
      for (const double poison : {std::nan(""), std::numeric_limits<double>::infinity(), 1e30})
        CHECK(equal_bits(results(form, c, {clean[0], with_positions(clean[1], 7, 16, poison)}), expected));
    }
    // In self-attention, queries of other places.
    const auto first_places = [&](const Tensor& x) {
      const Tensor y = form({constant(x)}, {own, Mask::padding({4, 6})}).value();
      return concat({slice(y.rows(0, 1), 1, 0, 4), y.rows(1, 2)}, 1);
    };
    const Tensor x = normal(own.self()[0]);
    CHECK(same_bits(first_places(x), first_places(with_positions(x, 4, 6, std::nan("")))));
  }
}

TEST_CASE("promise 13: 1e30 hidden by causal or explicit masks changes no bit of value or gradients in any form") {
  const AttentionSizes s{1, 2, 6, 12, 3, 2}, square{1, 2, 6, 6, 3, 2};
  // Key `at`, whose part of K becomes -1e30, and of V 1e30.
  const auto loud = [](std::vector<Tensor> x, const AttentionSizes& sizes, i64 at) {
    x[1] = with_positions(x[1], at, at + 1, 1e30);
    for (i64 c = 0; c < sizes.h * sizes.d_k; ++c) x[1](0, at, c) = -1e30;
    return x;
  };
  Tensor all_but_one = full({6, 12}, 1, Dtype::i32);
  for (i64 i = 0; i < 6; ++i) all_but_one(i, 7) = 0;
  for (const Form form : all_forms) {
    const HeadsCall table{s, Mask::allow(all_but_one), 0.3}, causal{square, Mask::causal()};
    const std::vector<Tensor> x = normals(s.cross()), y = normals(square.cross());
    CHECK(equal_bits(results(form, table, loud(x, s, 7)), results(form, table, x)));
    const auto first = [&](const std::vector<Tensor>& in) {  // the last key is seen by the last query alone
      return slice(form({constant(in[0]), constant(in[1])}, causal).value(), 1, 0, 5);
    };
    CHECK(same_bits(first(loud(y, square, 5)), first(y)));
  }
}

TEST_CASE("a bias of 1e4 or -1e4 in what a mask hides changes no bit") {
  const AttentionSizes s{1, 1, 5, 5, 2, 2};
  const HeadsCall c{s, Mask::causal(), 0, true};
  for (const Form form : fused_forms) {
    const std::vector<Tensor> x = normals(c.with_bias(s.self()));
    for (const double huge : {1e4, -1e4}) {
      Tensor bias = x[1].clone();
      for (i64 e = s.n; e < s.n + s.m - 1; ++e) bias(0, e) = huge;  // keys after the query
      CHECK(equal_bits(results(form, c, {x[0], bias}), results(form, c, x)));
    }
  }
}

TEST_CASE("promise 13: a query that may see nothing gives zeros and zero gradients in any form") {
  const AttentionSizes s{2, 2, 19, 19, 3, 4};
  for (const Form form : all_forms) {
    for (const Tensor& x : results(form, {s, Mask::padding({0, 19}), 0.3}, normals(s.self()))) {
      CHECK(all_finite(x));
      CHECK(sum_of_squares(x.rows(0, 1)) == 0);
    }
  }
}

TEST_CASE("promise 14: scores of 1e4, growing and falling from tile to tile, are softmaxed like small ones") {
  const AttentionSizes s{1, 1, 3, 23, 2, 2};
  std::vector<Tensor> x = normals(s.cross());
  scale_in_place(x[0], 1e4);
  for (const Mask& mask : {Mask(), Mask::causal()})  // what a mask hides has a score of -infinity
    for (const Form form : fused_forms)
      CHECK(distance(results(form, {s, mask}, x), results(textbook_form, {s, mask}, x)) <= 1e-10);
}

TEST_CASE("promise 14: in f32, with scores of thousands, the weights that backward computes again add up to 1") {
  // With dO the identity, dV[j, i] is the weight of key j for query i. The first column makes every score 5,000 larger:
  // there the numbers of f32 lie 5e-4 apart, and a normalizer that is kept as a score is rounded to one of them.
  constexpr i64 n = 8, m = long_enough, d_k = 16;
  Tensor q_numbers = normal({1, n, d_k}, 3, f32), kv_numbers = normal({1, m, d_k + n}, 4, f32);
  for (i64 i = 0; i < n; ++i) q_numbers(0, i, 0) = 100;
  for (i64 j = 0; j < m; ++j) kv_numbers(0, j, 0) = 200;
  const Variable q = parameter(q_numbers), kv = parameter(kv_numbers);
  Tensor identity = zeros({1, n, n});
  for (i64 i = 0; i < n; ++i) identity(0, i, i) = 1;
  backward(tiled_attention(q, kv, {1, d_k, n}, Mask(), {}, tiny), identity);
  const Tensor weights = sum(slice(kv.gradient(), 2, d_k, d_k + n), {1});
  for (i64 i = 0; i < n; ++i) CHECK(std::fabs(weights.at(i) - 1) <= 2e-6);
}

TEST_CASE("a sum over many keys loses fewer digits than one running sum") {
  constexpr i64 keys = 1'000'000;
  kernels::PerQuery<float> sum;
  sum.fill(0);
  sum[16] = -1;
  kernels::sum_over_keys(keys, 16, sum, [](i64, float* part) {
    for (i64 i = 0; i < 16; ++i) part[i] += 0.1F;
  });
  for (size_t i = 0; i < 16; ++i) CHECK(sum[i] == doctest::Approx(1e5).epsilon(3e-4));  // one running sum: 1e-3
  CHECK(sum[16] == -1);
}

TEST_CASE("a tile knows which blocks of 64 keys its queries see, and which need a check") {
  using kernels::SeenKeys;
  using Runs = std::vector<std::array<i64, 2>>;
  const QuerySpan q{0, 0, 300, 380, 400, 400};
  const auto runs_of = [&](const Mask& mask, KeyRange keys) {
    Runs runs;
    SeenKeys(mask, q, keys).for_runs([&](KeyRange run) { runs.push_back({run.first, run.limit}); });
    return runs;
  };
  CHECK(runs_of(Mask::causal(), {0, 400}) == Runs{{0, 380}});
  CHECK(runs_of(Mask::window(30), {0, 200}).empty());
  CHECK(runs_of(Mask::padding({0}), {0, 400}).empty());
  const Mask longformer = Mask::window(30) | Mask::global(1);
  CHECK(runs_of(longformer, {0, 400}) == Runs{{0, 64}, {256, 400}});
  CHECK(runs_of(longformer, {100, 400}) == Runs{{228, 400}});
  const KeyRange of_window = SeenKeys(Mask::window(30), q, {0, 300}).keys();
  CHECK(of_window.first == 270);
  CHECK(of_window.limit == 300);
  std::vector<i64> checked;
  SeenKeys(Mask::causal(), q, {0, 400}).for_blocks({0, 380}, [&](KeyRange keys, const MaskBlock* bits) {
    checked.push_back(bits ? keys.first : -1);
  });
  CHECK(checked == std::vector<i64>{-1, -1, -1, -1, 256, 320});
}

TEST_CASE("without batch rows, queries or keys, outputs and gradients are zeros") {
  for (const Form form : all_forms) {
    for (const AttentionSizes& s : {AttentionSizes{0, 2, 3, 3, 2, 2}, {2, 2, 0, 3, 2, 2}, {2, 2, 3, 0, 2, 2}}) {
      const std::vector<Tensor> got = results(form, {s, Mask(), 0.3}, normals(s.cross()));
      CHECK(got[0].shape() == Shape{s.B, s.n, s.h * s.d_v});
      for (const Tensor& x : got) CHECK(same_bits(x, zeros(x.shape(), f64)));
    }
  }
}
