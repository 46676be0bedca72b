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

Sample drawn_sample(std::string name, std::string variant, std::vector<Input> inputs, DrawnFunction f,
                    std::vector<DeclaredZero> zeros) {
  return {std::move(name), std::move(variant), [=](Dtype dtype, u64 seed) {
            Rng rng(7 * seed);
            std::vector<Tensor> values;
            for (const Input& input : inputs) values.push_back(drawn(input, rng, dtype));
            const Draw mask{.seed = 5 * seed, .step = 1};
            return checkable([f, mask](const Variables& x) { return f(x, mask); }, values, {}, zeros);
          }};
}

Sample sample(std::string name, std::string variant, std::vector<Input> inputs, Function f,
              std::vector<DeclaredZero> zeros) {
  return drawn_sample(
      std::move(name), std::move(variant), std::move(inputs), [f](const Variables& x, const Draw&) { return f(x); },
      std::move(zeros));
}

Tensor spread_ids(const Shape& shape, i64 rows) {
  Tensor ids = Tensor::empty(shape, Dtype::i32);
  for (i64 i = 0; i < ids.count(); ++i) ids.write<i32>()[i] = static_cast<i32>(7 * i % rows);
  return ids;
}

Sample long_sample(std::string name, std::string variant, std::vector<Input> inputs, Function f) {
  Sample result = sample(std::move(name), std::move(variant), std::move(inputs), std::move(f));
  result.options.coordinates = 3;
  result.options.directions = 2;
  return result;
}

}  // namespace sample_rows

namespace {

using namespace sample_rows;

void add_products(std::vector<Sample>& table) {
  const auto add = [&](const std::string& variant, const Shape& a, const Shape& b, Trans trans) {
    table.push_back(
        sample("matmul", variant, {{a}, {b}}, [trans](const Variables& x) { return matmul(x[0], x[1], trans); }));
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
  add("size 1", {1, 1}, {1, 1}, Trans::none);
  add("size 0, k = 0", {2, 0}, {0, 3}, Trans::none);
  table.push_back(long_sample("matmul", "long", {{{long_rows, 2}}, {{2, 3}}},
                              [](const Variables& x) { return matmul(x[0], x[1]); }));
  table.push_back(long_sample("matmul", "long, a transposed", {{{long_rows, 2}}, {{long_rows, 3}}},
                              [](const Variables& x) { return matmul(x[0], x[1], Trans::a); }));
  table.push_back(sample("matmul", "size 0, m = 0", {{{0, 3}}, {{3, 2}}},
                         [](const Variables& x) { return matmul(x[0], x[1]); }, {{"input 1", no_output}}));
  table.push_back(
      sample("matmul", "repeated input", {{{3, 3}}}, [](const Variables& x) { return matmul(x[0], x[0]); }));
}

void add_lookup_and_noise(std::vector<Sample>& table) {
  table.push_back(sample("embedding", "repeated ids", {{{4, 3}}}, [](const Variables& x) {
    return embedding(x[0], Tensor::of<i32>({2, 3}, {1, 0, 1, 3, 1, 0}));
  }));
  table.push_back(sample("embedding", "size 0, no ids", {{{4, 3}}},
                         [](const Variables& x) { return embedding(x[0], Tensor::empty({0}, Dtype::i32)); },
                         {{"input 0", no_output}}));
  table.push_back(long_sample("embedding", "long, many ids", {{{5, 2}}},
                              [](const Variables& x) { return embedding(x[0], spread_ids({long_rows}, 5)); }));
  table.push_back(long_sample("embedding", "long, many rows", {{{long_rows, 2}}},
                              [](const Variables& x) { return embedding(x[0], spread_ids({long_rows}, long_rows)); }));
  table.push_back(long_sample("dropout", "long", {{{long_rows, 3}}},
                              [](const Variables& x) { return dropout(x[0], 0.3, {.seed = 5, .step = 1}); }));
  const auto add_dropout = [&](const std::string& variant, const Shape& shape, double p,
                               std::vector<DeclaredZero> zeros = {}) {
    table.push_back(drawn_sample(
        "dropout", variant, {{shape}}, [p](const Variables& x, const Draw& mask) { return dropout(x[0], p, mask); },
        std::move(zeros)));
  };
  add_dropout("p 0.3", {3, 11}, 0.3);
  add_dropout("p 0", {3, 2}, 0);
  add_dropout("p 1", {3, 2}, 1, {{"input 0", "everything is dropped"}});
}

void add_softmax(std::vector<Sample>& table) {
  table.push_back(sample("softmax", "rows", {{{3, 5}}}, [](const Variables& x) { return softmax(x[0]); }));
  table.push_back(sample("softmax", "one element", {{{3, 1}}}, [](const Variables& x) { return softmax(x[0]); },
                         {{"input 0", "softmax over one element is always 1"}}));
  table.push_back(sample("softmax", "size 0", {{{0, 3}}}, [](const Variables& x) { return softmax(x[0]); }));
  table.push_back(sample("log_softmax", "rows", {{{3, 5}}}, [](const Variables& x) { return log_softmax(x[0]); }));
  table.push_back(sample("log_softmax", "one element", {{{3, 1}}}, [](const Variables& x) { return log_softmax(x[0]); },
                         {{"input 0", "the logarithm of softmax over one element is always 0"}}));
  table.push_back(sample("log_softmax", "size 0", {{{0, 3}}}, [](const Variables& x) { return log_softmax(x[0]); }));
  for (const auto& [name, f] :
       {std::pair<const char*, Variable (*)(const Variable&)>{"softmax", softmax}, {"log_softmax", log_softmax}}) {
    const Function on_first = [f = f](const Variables& x) { return f(x[0]); };
    table.push_back(sample(name, "tails", {{{3, 6}, Range::tails}}, on_first));
    table.push_back(long_sample(name, "long", {{{long_rows, 3}}}, on_first));
  }
}

void add_layer_norm(std::vector<Sample>& table) {
  const Function norm = [](const Variables& x) { return layer_norm(x[0], x[1], x[2], 1e-2); };
  table.push_back(sample("layer_norm", "tails", {{{3, 6}, Range::tails}, {{6}}, {{6}}}, norm));
  table.push_back(long_sample("layer_norm", "long", {{{long_rows, 4}}, {{4}}, {{4}}}, norm));
  const auto add = [&](const std::string& variant, LayerNormForm form) {
    table.push_back(sample("layer_norm", variant, {{{2, 3, 5}}, {{5}}, {{5}}},
                           [form](const Variables& x) { return layer_norm(x[0], x[1], x[2], 1e-2, form); }));
  };
  add("root of variance plus eps", LayerNormForm::root_of_variance_plus_eps);
  add("std plus eps", LayerNormForm::std_plus_eps);
  add("unbiased std plus eps", LayerNormForm::unbiased_std_plus_eps);
  const auto add_small = [&](const std::string& variant, const Shape& shape, std::vector<DeclaredZero> zeros) {
    table.push_back(sample(
        "layer_norm", variant, {{shape}, {{shape[-1]}}, {{shape[-1]}}},
        [](const Variables& x) { return layer_norm(x[0], x[1], x[2]); }, std::move(zeros)));
  };
  const std::string always_zero = "one number is its own mean, and their difference always 0";
  add_small("one element", {3, 1}, {{"input 0", always_zero}, {"input 1", always_zero}});
  add_small("size 0", {0, 3}, {{"input 1", no_output}, {"input 2", no_output}});
  table.push_back(sample("layer_norm", "no weight, no bias", {{{3, 4}}},
                         [](const Variables& x) { return layer_norm(x[0], {}, {}); }));
}

void add_rms_norm(std::vector<Sample>& table) {
  const Function rms = [](const Variables& x) { return rms_norm(x[0], 1e-2); };
  table.push_back(sample("rms_norm", "rows", {{{2, 3, 5}}}, rms));
  table.push_back(sample("rms_norm", "one element", {{{3, 1}}}, rms));
  table.push_back(sample("rms_norm", "size 0", {{{0, 3}}}, rms));
  table.push_back(sample("rms_norm", "tails", {{{3, 6}, Range::tails}}, rms));
  table.push_back(long_sample("rms_norm", "long", {{{long_rows, 3}}}, rms));
}

void add_masked_softmax(std::vector<Sample>& table) {
  const auto add = [&](const std::string& variant, const Mask& mask) {
    table.push_back(sample("masked_softmax", variant, {{{2, 2, 3, 3}}},
                           [mask](const Variables& x) { return masked_softmax(x[0], mask); }));
  };
  add("everything", Mask());
  add("causal and padding", causal_and_padded());
  add("table with an empty row", table_with_empty_row());
  add("a window, the last query sees less", Mask::window(1) & Mask::padding(Tensor::of<i32>({2}, {3, 2})));
  add("a window or a global position, padded", (Mask::window(0) | Mask::global(1)) & Mask::padding({3, 2}));
  table.push_back(long_sample("masked_softmax", "long", {{{1, 1, long_rows, 3}}},
                              [](const Variables& x) { return masked_softmax(x[0], Mask()); }));
}

void add_by_distance(std::vector<Sample>& table) {
  const auto add = [&](const std::string& variant, i64 n, i64 m) {
    table.push_back(sample("by_distance", variant, {{{2, n + m - 1}}},
                           [=](const Variables& x) { return by_distance(x[0], n, m); }));
  };
  add("as many queries as keys", 3, 3);
  add("more keys than queries", 2, 4);
  add("more queries than keys", 4, 2);
  add("one query, one key", 1, 1);
  table.push_back(long_sample("by_distance", "long", {{{1, long_rows + 2}}},
                              [](const Variables& x) { return by_distance(x[0], long_rows, 3); }));
  table.push_back(
      sample("by_distance", "size 0, no head", {{{0, 3}}}, [](const Variables& x) { return by_distance(x[0], 2, 2); }));
}

void add_zero_padding(std::vector<Sample>& table) {
  table.push_back(sample("zero_padding", "lengths 3 and 2", {{{2, 2, 3, 2}}},
                         [](const Variables& x) { return zero_padding(x[0], causal_and_padded()); }));
  table.push_back(long_sample("zero_padding", "long", {{{1, 1, long_rows, 2}}}, [](const Variables& x) {
    return zero_padding(x[0], Mask::padding(Tensor::of<i32>({1}, {long_rows - 3})));
  }));
}

void add_rotary(std::vector<Sample>& table) {
  const auto turned = [](const Variables& x) {
    // Any two numbers for each pair: only a sine and cosine keep its length, but the derivative has the same form.
    Rng rng(1);
    const Shape pairs{x[0].size(1), x[0].size(3) / 2};
    const Tensor sine = randn(pairs, rng, x[0].dtype()), cosine = randn(pairs, rng, x[0].dtype());
    return rotary(x[0], sine, cosine);
  };
  table.push_back(sample("rotary", "two sequences, two heads", {{{2, 3, 2, 4}}}, turned));
  table.push_back(sample("rotary", "one position, one pair", {{{1, 1, 1, 2}}}, turned));
  table.push_back(sample("rotary", "size 0, no position", {{{2, 0, 2, 4}}}, turned));
  table.push_back(long_sample("rotary", "long", {{{1, long_rows, 1, 2}}}, turned));
}

void add_attention(std::vector<Sample>& table) {
  const auto add = [&](const std::string& variant, const Mask& mask, double p) {
    table.push_back(drawn_sample("attention", variant, {{{2, 2, 3, 4}}, {{2, 2, 3, 4}}, {{2, 2, 3, 2}}},
                                 [mask, p](const Variables& x, const Draw& d) {
                                   return attention(x[0], x[1], x[2], mask, {.p = p, .draw = d}).output;
                                 }));
  };
  add("everything", Mask(), 0);
  add("causal and padding", causal_and_padded(), 0);
  add("table with an empty row", table_with_empty_row(), 0);
  add("dropout", Mask::causal(), 0.4);
  const auto add_biased = [&](const std::string& variant, const Shape& bias, const Mask& mask) {
    table.push_back(
        sample("attention", variant, {{{2, 2, 3, 4}}, {{2, 2, 3, 4}}, {{2, 2, 3, 2}}, {bias}},
               [mask](const Variables& x) { return attention(x[0], x[1], x[2], mask, {.bias = x[3]}).output; }));
  };
  add_biased("a bias by distance", {2, 5}, causal_and_padded());
  add_biased("a bias for each pair", {1, 2, 3, 3}, Mask());
  for (const auto& [variant, n, m] :
       {std::tuple<const char*, i64, i64>{"long, queries", long_rows, 3}, {"long, keys", 2, long_rows}}) {
    table.push_back(long_sample("attention", variant, {{{1, 1, n, 2}}, {{1, 1, m, 2}}, {{1, 1, m, 2}}},
                                [](const Variables& x) { return attention(x[0], x[1], x[2], Mask()).output; }));
  }
  const auto add_sizes = [&](const std::string& variant, i64 B, i64 n, i64 m, i64 d_k,
                             std::vector<DeclaredZero> zeros) {
    table.push_back(sample(
        "attention", variant, {{{B, 2, n, d_k}}, {{B, 2, m, d_k}}, {{B, 2, m, 2}}},
        [](const Variables& x) { return attention(x[0], x[1], x[2], Mask()).output; }, std::move(zeros)));
  };
  const std::string certain = "softmax over one key is always 1";
  add_sizes("more keys than queries", 2, 2, 4, 4, {});
  add_sizes("keys of three numbers", 2, 2, 3, 3, {});
  add_sizes("one query, one key", 2, 1, 1, 4, {{"input 0", certain}, {"input 1", certain}});
  add_sizes("size 0, no batch row", 0, 3, 3, 4, {});
}

void add_losses(std::vector<Sample>& table) {
  const Tensor targets = Tensor::of<i32>({2, 2}, {1, 0, -100, 3});
  const auto add = [&](const std::string& variant, const CrossEntropyOptions& options) {
    table.push_back(sample("cross_entropy", variant, {{{2, 2, 4}}},
                           [=](const Variables& x) { return cross_entropy(x[0], targets, options); }));
  };
  add("plain", {});
  add("smoothed over all classes", {.label_smoothing = 0.1});
  add("smoothed over wrong classes", {.label_smoothing = 0.1, .smoothing = Smoothing::wrong_classes});
  add("sum", {.label_smoothing = 0.2, .reduction = Reduction::sum});
  add("given divisor", {.reduction = Reduction::divisor, .divisor = 7});
  const CrossEntropyOptions total{.reduction = Reduction::sum};
  table.push_back(sample("cross_entropy", "tails", {{{4, 4}, Range::tails}},
                         [total](const Variables& x) { return cross_entropy(x[0], spread_ids({4}, 4), total); }));
  table.push_back(long_sample("cross_entropy", "long", {{{long_rows, 3}}}, [total](const Variables& x) {
    return cross_entropy(x[0], spread_ids({long_rows}, 3), total);
  }));
  table.push_back(sample("cross_entropy", "one class", {{{2, 1}}},
                         [](const Variables& x) {
                           return cross_entropy(x[0], Tensor::of<i32>({2}, {0, 0}));
                         },
                         {{"input 0", "the only class is always certain"}}));
  table.push_back(sample("cross_entropy", "size 0, no rows", {{{0, 4}}},
                         [](const Variables& x) { return cross_entropy(x[0], Tensor::empty({0}, Dtype::i32)); }));
  table.push_back(sample("cross_entropy", "nothing counts", {{{2, 4}}},
                         [](const Variables& x) {
                           return cross_entropy(x[0], Tensor::of<i32>({2}, {-100, -100}));
                         },
                         {{"input 0", "no target counts"}}));
}

}  // namespace

const std::vector<Sample>& operation_samples() {
  static const std::vector<Sample> table = [] {
    std::vector<Sample> samples;
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
    return samples;
  }();
  return table;
}

}  // namespace orrery
