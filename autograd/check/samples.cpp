// Chapter 6. One line per proof: each operation with the shapes and special cases its derivative must survive.
//
// Values come from N(0, 1) unless the operation needs another range: logarithms and roots take positive numbers, kinks
// (relu, max) are kept at least 0.05 away, since no derivative exists there. Each operation has a long row, in which
// loops that are cut into chunks of 8,192 elements or rows have several chunks.
#include "autograd/check/samples.h"

#include <cmath>

#include "autograd/check/sample_rows.h"
#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace sample_rows {
namespace {

Tensor drawn(const Input& input, Rng& rng, Dtype dtype) {
  Tensor x = randn(input.shape, rng, f64);
  double* value = x.write<double>();
  for (i64 i = 0; i < x.count(); ++i) {
    switch (input.range) {
      case Range::normal: break;
      case Range::positive: value[i] = 0.5 + 2.0 * rng.uniform(); break;
      case Range::away_from_zero: value[i] += value[i] < 0 ? -0.05 : 0.05; break;
      case Range::tails:
      case Range::positive_tails:
        if (i % 2 == 1) value[i] = (value[i] < 0 ? -1 : 1) * (4.0 + 6.0 * rng.uniform());
        if (input.range == Range::positive_tails) value[i] = 0.5 + std::fabs(value[i]);
        break;
      // 7919 is a prime that divides none of the counts: no value comes twice, in an order that looks random.
      case Range::distinct: value[i] = 0.1 * static_cast<double>((i * 7919 + 3) % std::max<i64>(1, x.count())); break;
      // Values repeat after 101: many distinct ones would be so large that numeric derivatives are inexact.
      case Range::distinct_nearby: value[i] = 0.1 * static_cast<double>(i * 37 % 101); break;
    }
  }
  return x.to(dtype);
}

}  // namespace

void SampleTable::add(const std::string& name, const std::string& variant, const std::vector<Input>& inputs,
                      const std::vector<DeclaredZero>& zeros, const Function& f) {
  rows.push_back({name, variant, [=](Dtype dtype, u64 seed) {
                    Rng rng(7 * seed);
                    std::vector<Tensor> values;
                    for (const Input& input : inputs) values.push_back(drawn(input, rng, dtype));
                    const Draw mask{.seed = 5 * seed, .step = 1};
                    return checkable([f, mask](In x) { return f.call(x, mask); }, values, {}, zeros);
                  }});
}

void SampleTable::add_long(const std::string& name, const std::string& variant, const std::vector<Input>& inputs,
                           const Function& f) {
  add(name, variant, inputs, f);
  rows.back().options.coordinates = 3;
  rows.back().options.directions = 2;
}

Tensor spread_ids(const Shape& shape, i64 rows) {
  Tensor ids = Tensor::empty(shape, Dtype::i32);
  for (i64 i = 0; i < ids.count(); ++i) ids.write<i32>()[i] = static_cast<i32>(7 * i % rows);
  return ids;
}

}  // namespace sample_rows

namespace {

using namespace sample_rows;

void add_products(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Shape& a, const Shape& b, Trans trans) {
    table.add("matmul", variant, {{a}, {b}}, [trans](In x) { return matmul(x[0], x[1], trans); });
  };
  add("plain", {2, 3}, {3, 4}, Trans::none);
  add("a transposed", {3, 2}, {3, 4}, Trans::a);
  add("b transposed", {2, 3}, {4, 3}, Trans::b);
  add("both transposed", {3, 2}, {4, 3}, Trans::both);
  add("batched", {2, 2, 3}, {2, 3, 2}, Trans::none);
  add("batched, a transposed", {2, 3, 2}, {2, 3, 2}, Trans::a);
  add("batched, b transposed", {2, 2, 3}, {2, 2, 3}, Trans::b);
  add("batched, both transposed", {2, 3, 2}, {2, 2, 3}, Trans::both);
  add("shared b", {2, 2, 3}, {3, 2}, Trans::none);
  add("shared b transposed", {2, 2, 3}, {4, 3}, Trans::b);
  add("square", {3, 3}, {3, 3}, Trans::none);
  add("size 1", {1, 1}, {1, 1}, Trans::none);
  add("size 0, k = 0", {2, 0}, {0, 3}, Trans::none);
  add("a matrix and a vector", {2, 2, 3}, {3}, Trans::none);
  add("a vector and a matrix", {3}, {2, 3, 2}, Trans::none);
  add("two vectors", {3}, {3}, Trans::none);
  add("leading axes repeated", {2, 1, 2, 3}, {3, 3, 2}, Trans::none);
  add("one b for several a transposed", {2, 3, 2}, {3, 4}, Trans::a);
  table.add_long("matmul", "long", {{{long_rows, 2}}, {{2, 3}}}, [](In x) { return matmul(x[0], x[1]); });
  table.add_long("matmul", "long, a transposed", {{{long_rows, 2}}, {{long_rows, 3}}},
                 [](In x) { return matmul(x[0], x[1], Trans::a); });
  table.add("matmul", "size 0, m = 0", {{{0, 3}}, {{3, 2}}}, {{"input 1", no_output}},
            [](In x) { return matmul(x[0], x[1]); });
  table.add("matmul", "repeated input", {{{3, 3}}}, [](In x) { return matmul(x[0], x[0]); });
}

void add_lookup_and_noise(SampleTable& table) {
  table.add("embedding", "repeated ids", {{{4, 3}}}, [](In x) {
    return embedding(x[0], Tensor::of<i32>({2, 3}, {1, 0, 1, 3, 1, 0}));
  });
  table.add("embedding", "size 0, no ids", {{{4, 3}}}, {{"input 0", no_output}},
            [](In x) { return embedding(x[0], Tensor::empty({0}, Dtype::i32)); });
  table.add_long("embedding", "long, many ids", {{{5, 2}}},
                 [](In x) { return embedding(x[0], spread_ids({long_rows}, 5)); });
  table.add_long("embedding", "long, many rows", {{{long_rows, 2}}},
                 [](In x) { return embedding(x[0], spread_ids({long_rows}, long_rows)); });
  table.add_long("dropout", "long", {{{long_rows, 3}}},
                 [](In x) { return dropout(x[0], 0.3, {.seed = 5, .step = 1}); });
  const auto add_dropout = [&](const std::string& variant, const Shape& shape, double p,
                               std::vector<DeclaredZero> zeros = {}) {
    table.add("dropout", variant, {{shape}}, zeros, [p](In x, const Draw& mask) { return dropout(x[0], p, mask); });
  };
  add_dropout("p 0.3", {3, 11}, 0.3);
  add_dropout("p 0", {3, 2}, 0);
  add_dropout("p 1", {3, 2}, 1, {{"input 0", "everything is dropped"}});
}

void add_softmax(SampleTable& table) {
  table.add("softmax", "rows", {{{3, 5}}}, [](In x) { return softmax(x[0]); });
  table.add("softmax", "one element", {{{3, 1}}}, {{"input 0", "softmax over one element is always 1"}},
            [](In x) { return softmax(x[0]); });
  table.add("softmax", "size 0", {{{0, 3}}}, [](In x) { return softmax(x[0]); });
  table.add("log_softmax", "rows", {{{3, 5}}}, [](In x) { return log_softmax(x[0]); });
  table.add("log_softmax", "one element", {{{3, 1}}},
            {{"input 0", "the logarithm of softmax over one element is always 0"}},
            [](In x) { return log_softmax(x[0]); });
  table.add("log_softmax", "size 0", {{{0, 3}}}, [](In x) { return log_softmax(x[0]); });
  for (const auto& [name, f] :
       {std::pair<const char*, Variable (*)(const Variable&)>{"softmax", softmax}, {"log_softmax", log_softmax}}) {
    const Function on_first = [f = f](In x) { return f(x[0]); };
    table.add(name, "tails", {{{3, 6}, Range::tails}}, on_first);
    table.add_long(name, "long", {{{long_rows, 3}}}, on_first);
  }
}

void add_layer_norm(SampleTable& table) {
  const Function norm = [](In x) { return layer_norm(x[0], x[1], x[2], 1e-2); };
  table.add("layer_norm", "tails", {{{3, 6}, Range::tails}, {{6}}, {{6}}}, norm);
  table.add_long("layer_norm", "long", {{{long_rows, 4}}, {{4}}, {{4}}}, norm);
  const auto add = [&](const std::string& variant, LayerNormForm form) {
    table.add("layer_norm", variant, {{{2, 3, 5}}, {{5}}, {{5}}},
              [form](In x) { return layer_norm(x[0], x[1], x[2], 1e-2, form); });
  };
  add("root of variance plus eps", LayerNormForm::root_of_variance_plus_eps);
  add("std plus eps", LayerNormForm::std_plus_eps);
  add("unbiased std plus eps", LayerNormForm::unbiased_std_plus_eps);
  const auto add_small = [&](const std::string& variant, const Shape& shape, std::vector<DeclaredZero> zeros) {
    table.add("layer_norm", variant, {{shape}, {{shape[-1]}}, {{shape[-1]}}}, zeros,
              [](In x) { return layer_norm(x[0], x[1], x[2]); });
  };
  const std::string always_zero = "one number is its own mean, and their difference always 0";
  add_small("one element", {3, 1}, {{"input 0", always_zero}, {"input 1", always_zero}});
  add_small("size 0", {0, 3}, {{"input 1", no_output}, {"input 2", no_output}});
  table.add("layer_norm", "no weight, no bias", {{{3, 4}}}, [](In x) { return layer_norm(x[0], {}, {}); });
}

void add_rms_norm(SampleTable& table) {
  const Function rms = [](In x) { return rms_norm(x[0], 1e-2); };
  table.add("rms_norm", "rows", {{{2, 3, 5}}}, rms);
  table.add("rms_norm", "one element", {{{3, 1}}}, rms);
  table.add("rms_norm", "size 0", {{{0, 3}}}, rms);
  table.add("rms_norm", "tails", {{{3, 6}, Range::tails}}, rms);
  table.add_long("rms_norm", "long", {{{long_rows, 3}}}, rms);
}

void add_masked_softmax(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Mask& mask) {
    table.add("masked_softmax", variant, {{{2, 2, 3, 3}}}, [mask](In x) { return masked_softmax(x[0], mask); });
  };
  add("everything", Mask());
  add("causal and padding", causal_and_padded());
  add("table with an empty row", table_with_empty_row());
  add("a window, the last query sees less", Mask::window(1) & Mask::padding(Tensor::of<i32>({2}, {3, 2})));
  add("a window or a global position, padded", (Mask::window(0) | Mask::global(1)) & Mask::padding({3, 2}));
  table.add_long("masked_softmax", "long", {{{1, 1, long_rows, 3}}}, [](In x) { return masked_softmax(x[0], Mask()); });
}

void add_by_distance(SampleTable& table) {
  const auto add = [&](const std::string& variant, i64 n, i64 m) {
    table.add("by_distance", variant, {{{2, n + m - 1}}}, [=](In x) { return by_distance(x[0], n, m); });
  };
  add("as many queries as keys", 3, 3);
  add("more keys than queries", 2, 4);
  add("more queries than keys", 4, 2);
  add("one query, one key", 1, 1);
  table.add_long("by_distance", "long", {{{1, long_rows + 2}}}, [](In x) { return by_distance(x[0], long_rows, 3); });
  table.add("by_distance", "size 0, no head", {{{0, 3}}}, [](In x) { return by_distance(x[0], 2, 2); });
}

void add_zero_padding(SampleTable& table) {
  table.add("zero_padding", "lengths 3 and 2", {{{2, 2, 3, 2}}},
            [](In x) { return zero_padding(x[0], causal_and_padded()); });
  table.add_long("zero_padding", "long", {{{1, 1, long_rows, 2}}},
                 [](In x) { return zero_padding(x[0], Mask::padding(Tensor::of<i32>({1}, {long_rows - 3}))); });
}

void add_rotary(SampleTable& table) {
  const auto turned = [](In x) {
    // Any two numbers for each pair: only a sine and cosine keep its length, but the derivative has the same form.
    Rng rng(1);
    const Shape pairs{x[0].size(1), x[0].size(3) / 2};
    const Tensor sine = randn(pairs, rng, x[0].dtype()), cosine = randn(pairs, rng, x[0].dtype());
    return rotary(x[0], sine, cosine);
  };
  table.add("rotary", "two sequences, two heads", {{{2, 3, 2, 4}}}, turned);
  table.add("rotary", "one position, one pair", {{{1, 1, 1, 2}}}, turned);
  table.add("rotary", "size 0, no position", {{{2, 0, 2, 4}}}, turned);
  table.add_long("rotary", "long", {{{1, long_rows, 1, 2}}}, turned);
}

void add_attention(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Mask& mask, double p) {
    table.add("attention", variant, {{{2, 2, 3, 4}}, {{2, 2, 3, 4}}, {{2, 2, 3, 2}}},
              [mask, p](In x, const Draw& d) { return attention(x[0], x[1], x[2], mask, {.p = p, .draw = d}).output; });
  };
  add("everything", Mask(), 0);
  add("causal and padding", causal_and_padded(), 0);
  add("table with an empty row", table_with_empty_row(), 0);
  add("dropout", Mask::causal(), 0.4);
  const auto add_biased = [&](const std::string& variant, const Shape& bias, const Mask& mask) {
    table.add("attention", variant, {{{2, 2, 3, 4}}, {{2, 2, 3, 4}}, {{2, 2, 3, 2}}, {bias}},
              [mask](In x) { return attention(x[0], x[1], x[2], mask, {.bias = x[3]}).output; });
  };
  add_biased("a bias by distance", {2, 5}, causal_and_padded());
  add_biased("a bias for each pair", {1, 2, 3, 3}, Mask());
  for (const auto& [variant, n, m] :
       {std::tuple<const char*, i64, i64>{"long, queries", long_rows, 3}, {"long, keys", 2, long_rows}}) {
    table.add_long("attention", variant, {{{1, 1, n, 2}}, {{1, 1, m, 2}}, {{1, 1, m, 2}}},
                   [](In x) { return attention(x[0], x[1], x[2], Mask()).output; });
  }
  const auto add_sizes = [&](const std::string& variant, i64 B, i64 n, i64 m, i64 d_k,
                             std::vector<DeclaredZero> zeros) {
    table.add("attention", variant, {{{B, 2, n, d_k}}, {{B, 2, m, d_k}}, {{B, 2, m, 2}}}, zeros,
              [](In x) { return attention(x[0], x[1], x[2], Mask()).output; });
  };
  const std::string certain = "softmax over one key is always 1";
  add_sizes("more keys than queries", 2, 2, 4, 4, {});
  add_sizes("keys of three numbers", 2, 2, 3, 3, {});
  add_sizes("one query, one key", 2, 1, 1, 4, {{"input 0", certain}, {"input 1", certain}});
  add_sizes("size 0, no batch row", 0, 3, 3, 4, {});
}

void add_losses(SampleTable& table) {
  const Tensor targets = Tensor::of<i32>({2, 2}, {1, 0, -100, 3});
  const auto add = [&](const std::string& variant, const CrossEntropyOptions& options) {
    table.add("cross_entropy", variant, {{{2, 2, 4}}}, [=](In x) { return cross_entropy(x[0], targets, options); });
  };
  add("plain", {});
  add("smoothed over all classes", {.label_smoothing = 0.1});
  add("smoothed over wrong classes", {.label_smoothing = 0.1, .smoothing = Smoothing::wrong_classes});
  add("sum", {.label_smoothing = 0.2, .reduction = Reduction::sum});
  add("given divisor", {.reduction = Reduction::divisor, .divisor = 7});
  const CrossEntropyOptions total{.reduction = Reduction::sum};
  table.add("cross_entropy", "tails", {{{4, 4}, Range::tails}},
            [total](In x) { return cross_entropy(x[0], spread_ids({4}, 4), total); });
  table.add_long("cross_entropy", "long", {{{long_rows, 3}}},
                 [total](In x) { return cross_entropy(x[0], spread_ids({long_rows}, 3), total); });
  table.add("cross_entropy", "one class", {{{2, 1}}}, {{"input 0", "the only class is always certain"}}, [](In x) {
    return cross_entropy(x[0], Tensor::of<i32>({2}, {0, 0}));
  });
  table.add("cross_entropy", "size 0, no rows", {{{0, 4}}},
            [](In x) { return cross_entropy(x[0], Tensor::empty({0}, Dtype::i32)); });
  table.add("cross_entropy", "nothing counts", {{{2, 4}}}, {{"input 0", "no target counts"}}, [](In x) {
    return cross_entropy(x[0], Tensor::of<i32>({2}, {-100, -100}));
  });
}

}  // namespace

const std::vector<Sample>& operation_samples() {
  static const std::vector<Sample> table = [] {
    SampleTable samples;
    add_simple(samples);
    add_products(samples);
    add_lookup_and_noise(samples);
    add_softmax(samples);
    add_layer_norm(samples);
    add_rms_norm(samples);
    add_masked_softmax(samples);
    add_by_distance(samples);
    add_zero_padding(samples);
    add_rotary(samples);
    add_attention(samples);
    add_losses(samples);
    add_fused(samples);
    add_sequences(samples);
    return samples.rows;
  }();
  return table;
}

}  // namespace orrery
