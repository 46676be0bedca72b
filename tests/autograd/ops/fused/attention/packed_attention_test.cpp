// Chapter 8. Attention on packed products against its heads split out, attended and joined again, one step after
// another.
#include "autograd/ops/fused/attention/scores.h"
#include "autograd/ops/fused/attention/tiled_attention.h"
#include "core/machine/memory.h"
#include "core/mask.h"
#include "tests/autograd/ops/textbook_attention.h"

using namespace orrery;
using namespace orrery::small;
using kernels::query_tile;

namespace {

constexpr Draw packed_draw{.seed = 3, .step = 7, .micro = 1, .index = 4};

Variable fused_attention(const Variables& x, const AttentionSizes& s, const Mask& mask, double p) {
  return x.size() == 1 ? packed_attention(x[0], {s.h, s.d_k, s.d_v}, mask, {.p = p, .draw = packed_draw})
                       : packed_attention(x[0], x[1], {s.h, s.d_k, s.d_v}, mask, {.p = p, .draw = packed_draw});
}

void check_packed(const AttentionSizes& s, const Mask& mask, double p, const std::vector<Shape>& shapes) {
  INFO(s, ", ", mask, ", p ", p);
  check_fused([&](const Variables& x) { return fused_attention(x, s, mask, p); },
              [&](const Variables& x) { return textbook_attention(x, s, mask, p, packed_draw); }, normals(shapes));
}

}  // namespace

TEST_CASE("self-attention equals the composed form under every mask, with dropout and without") {
  for (const AttentionSizes& s :
       {AttentionSizes{1, 1, 1, 1, 1, 1}, {2, 3, 5, 5, 4, 4}, {3, 2, 17, 17, 5, 7}, {1, 2, 40, 40, 16, 3}}) {
    for (const Mask& mask : attention_masks(s)) {
      for (const double p : {0.0, 0.3}) check_packed(s, mask, p, s.self());
    }
  }
}

TEST_CASE("cross-attention equals the composed form under every mask, with dropout and without") {
  for (const AttentionSizes& s :
       {AttentionSizes{1, 1, 1, 3, 1, 1}, {2, 3, 5, 9, 4, 2}, {3, 2, 19, 6, 5, 7}, {2, 1, 33, 70, 8, 16}}) {
    for (const Mask& mask : attention_masks(s)) {
      for (const double p : {0.0, 0.3}) check_packed(s, mask, p, s.cross());
    }
  }
}

TEST_CASE("several tiles of queries: the last one holds one query, a part of a tile, or a whole tile") {
  for (const i64 n : {query_tile + 1, 2 * query_tile, 2 * query_tile + 44}) {
    const AttentionSizes s{1, 2, n, n, 5, 3}, other{2, 1, n, 30, 3, 5};
    for (const double p : {0.0, 0.2}) {
      check_packed(s, Mask::causal(), p, s.self());
      check_packed(s, Mask::padding({static_cast<i32>(n - 3)}), p, s.self());
      check_packed(s, Mask::causal() & Mask::window(30), p, s.self());
      check_packed(s, Mask::window(9, 140), p, s.self());
      check_packed(other, Mask(), p, other.cross());
      check_packed(other, Mask::causal() & Mask::padding({30, 11}), p, other.cross());
    }
  }
  const AttentionSizes s{1, 2, query_tile + 7, query_tile + 7, 3, 2};
  check_packed(s, sparse_table(s), 0.2, s.self());
}

TEST_CASE("a window or global positions give what a table of the same pairs gives, and hidden blocks are skipped") {
  for (const AttentionSizes& s : {AttentionSizes{1, 1, 300, 300, 3, 2}, {2, 1, 20, 400, 3, 2}}) {
    const std::vector<Tensor> x = normals(s.n == s.m ? s.self() : s.cross());
    for (const Mask& mask : sparse_masks(s)) {
      const Mask table = as_table(mask, s);
      for (const double p : {0.0, 0.2}) {
        INFO(s, ", ", mask.has_table(), ", p ", p);
        const Function textbook = [&](const Variables& v) { return textbook_attention(v, s, table, p, packed_draw); };
        const Function fused = [&](const Variables& v) { return fused_attention(v, s, mask, p); };
        CHECK(distance(value_then_gradients(fused, x), value_then_gradients(textbook, x)) <= 1e-12);
      }
    }
  }
}

TEST_CASE("NaN in a block of keys that no query of a tile may see reaches nothing: the block is skipped") {
  const AttentionSizes s{1, 1, 8, 400, 3, 2};
  const std::vector<Tensor> x = normals(s.cross());
  const i64 columns = s.d_k + s.d_v;
  Tensor dirty = x[1].clone();
  std::fill_n(dirty.write<double>() + 64 * columns, 192 * columns, std::nan(""));
  const Mask longformer = Mask::window(20) | Mask::global(2);
  for (const Mask& mask : {longformer, as_table(longformer, s)}) {
    const Function packed = [&](const Variables& v) { return fused_attention(v, s, mask, 0.3); };
    const Function tiled = [&](const Variables& v) {
      return tiled_attention(v[0], v[1], {s.h, s.d_k, s.d_v}, mask, {.p = 0.3, .draw = packed_draw});
    };
    for (const Function& f : {packed, tiled}) {
      const std::vector<Tensor> expected = value_then_gradients(f, x), got = value_then_gradients(f, {x[0], dirty});
      for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
    }
  }
}

TEST_CASE("more heads than groups of scratch memory give what the composed form gives") {
  const AttentionSizes s{13, 11, 3, 3, 2, 2};
  check_packed(s, Mask::causal(), 0.3, s.self());
}

TEST_CASE("what a query sees does not depend on the tile it is in") {
  const AttentionSizes s{1, 2, 200, 37, 6, 5};
  const std::vector<Tensor> x = normals(s.cross());
  const auto rows = [&](i64 begin, i64 end) {
    return packed_attention(constant(slice(x[0], 1, begin, end)), constant(x[1]), {s.h, s.d_k, s.d_v}, Mask()).value();
  };
  const Tensor all = rows(0, 200);
  CHECK(distance({rows(0, 7)}, {slice(all, 1, 0, 7)}) <= 1e-15);
  CHECK(distance({rows(120, 140)}, {slice(all, 1, 120, 140)}) <= 1e-15);
}

TEST_CASE("promise 13: what stands beyond a padding length changes no bit, not even NaN") {
  const AttentionSizes s{2, 3, 5, 6, 4, 2};
  const Mask mask = Mask::padding({4, 6});
  const i64 columns = s.h * (s.d_k + s.d_v);
  for (const double p : {0.0, 0.3}) {
    const Function f = [&](const Variables& x) { return fused_attention(x, s, mask, p); };
    const std::vector<Tensor> clean = normals(s.cross());
    const std::vector<Tensor> expected = value_then_gradients(f, clean);
    for (i64 i = 4 * columns; i < 6 * columns; ++i) CHECK(expected[2].at(i) == 0.0);
    for (const double poison : {std::nan(""), std::numeric_limits<double>::infinity(), 1e30}) {
      const std::vector<Tensor> dirty{clean[0], clean[1].clone()};
      Tensor kv = dirty[1];
      std::fill_n(kv.write<double>() + 4 * columns, 2 * columns, poison);
      const std::vector<Tensor> got = value_then_gradients(f, dirty);
      for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
    }
  }
}

TEST_CASE("promise 13: in self-attention, NaN in padded places reaches no query of another place") {
  const AttentionSizes s{2, 2, 6, 6, 3, 4};
  const Tensor clean = normal(s.self()[0]);
  Tensor dirty = clean.clone();
  const i64 columns = clean.size(2);
  std::fill_n(dirty.write<double>() + 4 * columns, 2 * columns, std::nan(""));
  const auto first_places = [&](const Tensor& x) {
    const Tensor y = packed_attention(constant(x), {s.h, s.d_k, s.d_v}, Mask::padding({4, 6})).value();
    return concat({slice(y.rows(0, 1), 1, 0, 4), y.rows(1, 2)}, 1);
  };
  CHECK(same_bits(first_places(clean), first_places(dirty)));
}

TEST_CASE("promise 13: 1e30 hidden by causal or explicit masks changes no bit of value or gradients") {
  const AttentionSizes s{1, 2, 6, 6, 3, 2};
  std::vector<i32> all_but_last(36, 1);
  for (size_t i = 0; i < 6; ++i) all_but_last[i * 6 + 5] = 0;
  for (const bool causal : {false, true}) {
    const Mask mask = causal ? Mask::causal() : Mask::allow(Tensor::of<i32>({6, 6}, all_but_last));
    const std::vector<Tensor> quiet = normals(s.cross()), loud{quiet[0], quiet[1].clone()};
    Tensor kv = loud[1];
    const i64 columns = kv.size(2);
    for (i64 c = 0; c < columns; ++c) kv.write<double>()[5 * columns + c] = c < s.h * s.d_k ? -1e30 : 1e30;
    if (causal) {  // the last key is seen by the last query alone
      const auto first = [&](const std::vector<Tensor>& x) {
        return slice(fused_attention({constant(x[0]), constant(x[1])}, s, mask, 0).value(), 1, 0, 5);
      };
      CHECK(same_bits(first(quiet), first(loud)));
    } else {
      const Function f = [&](const Variables& x) { return fused_attention(x, s, mask, 0.3); };
      const std::vector<Tensor> expected = value_then_gradients(f, quiet), got = value_then_gradients(f, loud);
      for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
    }
  }
}

TEST_CASE("promise 13: a query that may see nothing gives zeros and zero gradients") {
  const AttentionSizes s{2, 2, 5, 5, 3, 4};
  const std::vector<Tensor> got = value_then_gradients(
      [&](const Variables& x) {
        return fused_attention(x, s, Mask::padding({0, 5}), 0.3);
      },
      normals(s.self()));
  for (const Tensor& x : got) {
    for (i64 i = 0; i < x.count(); ++i) CHECK(std::isfinite(x.at(i)));
    for (i64 i = 0; i < x.count() / 2; ++i) CHECK(x.at(i) == 0.0);
  }
}

TEST_CASE("promise 14: scores of 1e4 and of -infinity are softmaxed like small ones") {
  const AttentionSizes s{1, 1, 3, 3, 2, 2};
  std::vector<Tensor> x = normals(s.cross());
  for (i64 i = 0; i < x[0].count(); ++i) x[0].write<double>()[i] *= 1e4;
  for (const Mask& mask : {Mask(), Mask::causal()}) {  // what a mask hides has a score of -infinity
    const Tensor y = fused_attention({constant(x[0]), constant(x[1])}, s, mask, 0).value();
    const Tensor expected = textbook_attention({constant(x[0]), constant(x[1])}, s, mask, 0, packed_draw).value();
    CHECK(distance({y}, {expected}) <= 1e-12);
  }
}

TEST_CASE("without batch rows, queries or keys, outputs and gradients are zeros") {
  for (const AttentionSizes& s : {AttentionSizes{0, 2, 3, 3, 2, 2}, {2, 2, 0, 3, 2, 2}, {2, 2, 3, 0, 2, 2}}) {
    const std::vector<Tensor> got = value_then_gradients(
        [&](const Variables& x) { return fused_attention(x, s, Mask(), 0.3); }, normals(s.cross()));
    CHECK(got[0].shape() == Shape{s.B, s.n, s.h * s.d_v});
    for (const Tensor& x : got) CHECK(same_bits(x, zeros(x.shape(), f64)));
  }
}

TEST_CASE("a gradient has the same bits if the other one is not wanted") {
  const AttentionSizes s{2, 2, 5, 7, 3, 2};
  const std::vector<Tensor> x = normals(s.cross());
  const Function f = [&](const Variables& v) { return fused_attention(v, s, Mask::causal(), 0.3); };
  const std::vector<Tensor> all = value_then_gradients(f, x);
  CHECK(same_bits(value_then_gradients(
                      [&](const Variables& v) {
                        return f({v[0], constant(x[1])});
                      },
                      {x[0]})[1],
                  all[1]));
  CHECK(same_bits(value_then_gradients(
                      [&](const Variables& v) {
                        return f({constant(x[0]), v[0]});
                      },
                      {x[1]})[1],
                  all[2]));
}

TEST_CASE("errors of packed attention name the rule") {
  const Variable qkv = constant(zeros({2, 3, 16})), q = constant(zeros({2, 3, 6})), kv = constant(zeros({2, 4, 10}));
  const auto error = [](const auto& f) { return error_of([&] { (void)f(); }); };
  CHECK(error([&] {
          return packed_attention(qkv, {2, 3, 3}, Mask());
        }).starts_with("packed_attention: 2 heads of 3 and 3 need 18 columns, got [2, 3, 16]"));
  CHECK(contains(error([&] { return packed_attention(q, kv, {2, 3, 3}, Mask()); }), "need 6 and 12 columns"));
  CHECK(contains(error([&] { return packed_attention(q, qkv, {0, 3, 2}, Mask()); }), "needs at least one head"));
  CHECK(contains(error([&] {
                   return packed_attention(q, qkv, {2, 0, 2}, Mask());
                 }),
                 "sizes above 0, got 2 heads of 0"));
  CHECK(contains(error([&] {
                   return packed_attention(q, qkv, {2, 3, 0}, Mask());
                 }),
                 "sizes above 0, got 2 heads of 3"));
  CHECK(contains(error([&] {
                   return packed_attention(q, constant(zeros({4, 10})), {2, 3, 2}, Mask());
                 }),
                 "inputs need shape [B, length, columns]"));
  CHECK(contains(error([&] {
                   return packed_attention(constant(zeros({3, 16})), {2, 3, 2}, Mask());
                 }),
                 "inputs need shape [B, length, columns]"));
  CHECK(contains(error([&] {
                   return packed_attention(constant(zeros({1, 3, 6})), kv, {2, 3, 2}, Mask());
                 }),
                 "batch sizes differ (1 and 2)"));
  CHECK(contains(error([&] {
                   return packed_attention(q, kv, {2, 3, 2}, Mask(), {.p = 1.5});
                 }),
                 "a probability in [0, 1]"));
  CHECK(contains(error([&] {
                   return packed_attention(q, kv, {2, 3, 2}, Mask::padding({1, 2, 3}));
                 }),
                 "lengths for 3 batch rows"));
  CHECK(contains(error([&] {
                   return packed_attention(q, kv, {2, 3, 2}, Mask::allow(full({3, 3}, 1, Dtype::i32)));
                 }),
                 "does not fit scores"));
}

TEST_CASE("packed attention has the same bits for any number of threads") {
  const Mask mask = Mask::causal() & Mask::padding({37, 20, 0});
  CHECK(thread_proof(
      [&](const auto& x) {
        return packed_attention(x[0], {4, 9, 11}, mask, {.p = 0.1, .draw = packed_draw});
      },
      {{3, 37, 4 * 29}}));
  CHECK(thread_proof(
      [&](const auto& x) {
        return packed_attention(x[0], x[1], {3, 5, 4}, Mask::padding({60, 7}), {.p = 0.1, .draw = packed_draw});
      },
      {{2, 150, 15}, {2, 60, 27}}));
}

TEST_CASE("without a tape, attention keeps no weights, and gives the same bits") {
  const i64 B = 80, h = 1, T = 64, d = 4, weights = B * h * T * T * 8;
  const Tensor qkv = normal({B, T, h * 3 * d});
  for (const double p : {0.0, 0.3}) {
    const auto peak_of = [&](const Variable& x, Tensor& y) {
      reset_peak();
      const i64 before = memory_counters().live_bytes;
      y = packed_attention(x, {h, d, d}, Mask::causal(), {.p = p, .draw = packed_draw}).value();
      return memory_counters().peak_bytes - before;
    };
    Tensor kept, unkept;
    const i64 with_tape = peak_of(parameter(qkv), kept), without = peak_of(constant(qkv), unkept);
    CHECK(same_bits(kept, unkept));
    if (!small::counts_memory()) continue;
    CHECK(with_tape > weights);
    CHECK(without < weights / 2);
  }
}
