// Chapter 8. The samples of attention on packed products: every kind of mask, dropout and bias; whole, and in tiles.
#include "autograd/check/sample_rows.h"
#include "autograd/ops/fused/attention/tiled_attention.h"
#include "autograd/ops/layout.h"
#include "core/mask.h"

namespace orrery::sample_rows {
namespace {

// One product for queries, keys and values of the same sequences, or one for the queries and one for the others.
Input packed_qkv(const Shape& lengths, const HeadSizes& s) { return {lengths.plus(s.h * (2 * s.d_k + s.d_v))}; }
std::vector<Input> packed_q_and_kv(i64 B, i64 n, i64 m, const HeadSizes& s) {
  return {{{B, n, s.h * s.d_k}}, {{B, m, s.h * (s.d_k + s.d_v)}}};
}

constexpr HeadSizes heads{.h = 2, .d_k = 3, .d_v = 2};

void add_packed_self_attention(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Mask& mask, double p, const Shape& lengths = {2, 3},
                       std::vector<DeclaredZero> zeros = {}) {
    table.add("packed_attention", "self, " + variant, {packed_qkv(lengths, heads)}, zeros,
              [=](In x, const Draw& draw) { return packed_attention(x[0], heads, mask, {.p = p, .draw = draw}); });
  };
  add("everything", Mask(), 0);
  add("causal and padding", causal_and_padded(), 0);
  add("table with an empty row", table_with_empty_row(), 0);
  add("causal, dropout", Mask::causal(), 0.4, {2, 9});
  add("table, dropout", table_with_empty_row(), 0.4);
  add("size 0, no batch row", Mask(), 0.4, {0, 3});
  add("window", Mask::window(1, 2), 0, {2, 5});
  add("causal window, dropout", Mask::causal() & Mask::window(2), 0.4, {2, 9});
  add("window or global position", Mask::window(1) | Mask::global(1), 0, {2, 6});
  add("causal, window or global position, dropout", Mask::causal() & (Mask::window(1) | Mask::global(2)), 0.4, {2, 9});
  add("nothing to see", Mask::padding({0, 0}), 0, {2, 3}, {{"input 0", "no query sees a key"}});
  table.add("packed_attention", "self, bias by distance, dropout", {packed_qkv({2, 5}, heads), {{heads.h, 9}}},
            [](In x, const Draw& draw) {
              return packed_attention(x[0], heads, Mask::window(2, 4), {.bias = x[1], .p = 0.4, .draw = draw});
            });
}

void add_packed_cross_attention(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Mask& mask, double p, i64 n, i64 m,
                       std::vector<DeclaredZero> zeros = {}) {
    table.add(
        "packed_attention", "cross, " + variant, packed_q_and_kv(2, n, m, heads), zeros,
        [=](In x, const Draw& draw) { return packed_attention(x[0], x[1], heads, mask, {.p = p, .draw = draw}); });
  };
  add("more keys than queries", Mask(), 0, 2, 4);
  add("padding", Mask::padding({3, 1}), 0, 3, 4);
  add("causal, more queries than keys", Mask::causal(), 0, 4, 2);
  add("table with an empty row, dropout", table_with_empty_row(), 0.4, 3, 3);
  add("one query, one key", Mask(), 0, 1, 1, {{"input 0", "softmax over one key is always 1"}});
  std::vector<Input> with_bias = packed_q_and_kv(2, 3, 4, heads);
  with_bias.push_back({{heads.h, 6}});
  table.add("packed_attention", "cross, bias by distance", with_bias,
            [](In x) { return packed_attention(x[0], x[1], heads, Mask(), {.bias = x[2]}); });
  for (const auto& [variant, n, m] :
       {std::tuple<const char*, i64, i64>{"cross, long, queries", long_rows, 3}, {"cross, long, keys", 2, long_rows}}) {
    table.add_long("packed_attention", variant, packed_q_and_kv(1, n, m, heads),
                   [](In x) { return packed_attention(x[0], x[1], heads, Mask()); });
  }
  table.add("packed_attention", "cross, repeated input", {{{2, 3, 4}}}, [](In x, const Draw& draw) {
    return packed_attention(x[0], concat({x[0], x[0]}, 2), {2, 2, 2}, Mask::causal(), {.p = 0.2, .draw = draw});
  });
}

// The form for long sequences, with tiles small enough that short ones have several of both kinds, whole and in part.
constexpr HeadSizes tiled_heads{.h = 2, .d_k = 2, .d_v = 3};
constexpr TileSizes small_tile{.queries = 8, .keys = 4};

void add_tiled_self_attention(SampleTable& table) {
  table.add("packed_attention", "tiles, self, bias by distance, dropout", {packed_qkv({2, 9}, tiled_heads), {{2, 17}}},
            [](In x, const Draw& draw) {
              return tiled_attention(x[0], tiled_heads, Mask(), {.bias = x[1], .p = 0.4, .draw = draw}, small_tile);
            });
  table.add("packed_attention", "tiles, self, causal, dropout", {packed_qkv({2, 9}, tiled_heads)},
            [](In x, const Draw& draw) {
              return tiled_attention(x[0], tiled_heads, Mask::causal(), {.p = 0.4, .draw = draw}, small_tile);
            });
}

void add_tiled_cross_attention(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Mask& mask, double p, i64 n, i64 m,
                       std::vector<DeclaredZero> zeros = {}) {
    table.add("packed_attention", "tiles, cross, " + variant, packed_q_and_kv(2, n, m, tiled_heads), zeros,
              [=](In x, const Draw& draw) {
                return tiled_attention(x[0], x[1], tiled_heads, mask, {.p = p, .draw = draw}, small_tile);
              });
  };
  const Mask table_of_tiles =
      Mask::allow(Tensor::of<i32>({3, 6}, {1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}));
  add("everything", Mask(), 0, 3, 6);
  add("causal, dropout", Mask::causal(), 0.4, 9, 7);
  add("padding", Mask::padding({5, 3}), 0, 2, 6);
  add("table with an empty row, and one that sees nothing in a tile", table_of_tiles, 0, 3, 6);
  add("one query, one key", Mask(), 0, 1, 1, {{"input 0", "softmax over one key is always 1"}});
  add("window", Mask::window(3, 1), 0.4, 9, 9);
  add("window, global position or table", Mask::window(1) | Mask::global(1) | table_of_tiles, 0.4, 3, 6);
  add("nothing to see", Mask::padding({0, 0}), 0, 2, 5,
      {{"input 0", "no query sees a key"}, {"input 1", "no query sees a key"}});
  std::vector<Input> with_bias = packed_q_and_kv(2, 9, 6, tiled_heads);
  with_bias.push_back({{2, 14}});
  table.add("packed_attention", "tiles, cross, bias by distance", with_bias,
            [](In x) { return tiled_attention(x[0], x[1], tiled_heads, Mask::window(4), {.bias = x[2]}, small_tile); });
  table.add_long("packed_attention", "tiles, long", packed_q_and_kv(1, long_rows, 5, tiled_heads),
                 [](In x) { return tiled_attention(x[0], x[1], tiled_heads, Mask(), {}, small_tile); });
}

}  // namespace

void add_fused_attention(SampleTable& table) {
  add_packed_self_attention(table);
  add_packed_cross_attention(table);
  add_tiled_self_attention(table);
  add_tiled_cross_attention(table);
}

}  // namespace orrery::sample_rows
