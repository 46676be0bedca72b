// Chapter 6. One line per proof: each operation with the shapes and special cases its derivative must survive.
//
// Values come from N(0, 1) unless the operation needs another range: logarithms and roots take positive numbers, kinks
// (relu, max) are kept at least 0.05 away, since no derivative exists there.
// Read next: autograd/check/bug_zoo.h
#include "autograd/check/samples.h"

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
      // No two values nearer than 0.1, in an order that looks random.
      case Range::distinct: value[i] = 0.1 * static_cast<double>((i * 7919 + 3) % std::max<i64>(1, x.count())); break;
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

}  // namespace sample_rows

namespace {

using namespace sample_rows;

void add_unary(std::vector<Sample>& table, const std::string& name, Range range,
               const std::function<Variable(const Variable&)>& f) {
  const Function on_first = [f](const Variables& x) { return f(x[0]); };
  table.push_back(sample(name, "[3, 4]", {{{3, 4}, range}}, on_first));
  table.push_back(sample(name, "scalar", {{{}, Range::positive}}, on_first));
  table.push_back(sample(name, "size 0", {{{2, 0}, range}}, on_first));
}

void add_binary(std::vector<Sample>& table, const std::string& name, Range second,
                const std::function<Variable(const Variable&, const Variable&)>& f) {
  const Function on_both = [f](const Variables& x) { return f(x[0], x[1]); };
  table.push_back(sample(name, "equal shapes", {{{2, 3}}, {{2, 3}, second}}, on_both));
  table.push_back(sample(name, "broadcast row", {{{4, 3}}, {{3}, second}}, on_both));
  table.push_back(sample(name, "broadcast both", {{{3, 1, 2}}, {{2, 1}, second}}, on_both));
  table.push_back(sample(name, "scalar", {{{2, 2}}, {{}, second}}, on_both));
  table.push_back(sample(name, "size 0", {{{0, 3}}, {{3}, second}}, on_both, {{"input 1", no_output}}));
}

void add_elementwise(std::vector<Sample>& table) {
  using V = const Variable&;
  add_binary(table, "add", Range::normal, [](V a, V b) { return add(a, b); });
  add_binary(table, "sub", Range::normal, [](V a, V b) { return sub(a, b); });
  add_binary(table, "mul", Range::normal, [](V a, V b) { return mul(a, b); });
  add_binary(table, "div", Range::positive, [](V a, V b) { return div(a, b); });
  table.push_back(sample("add", "repeated input", {{{2, 3}}}, [](const Variables& x) { return add(x[0], x[0]); }));
  table.push_back(sample("mul", "repeated input", {{{2, 3}}}, [](const Variables& x) { return mul(x[0], x[0]); }));
  add_unary(table, "neg", Range::normal, [](V x) { return neg(x); });
  add_unary(table, "scale", Range::normal, [](V x) { return scale(x, -1.7); });
  add_unary(table, "pow", Range::positive, [](V x) { return pow(x, 2.5); });
  table.push_back(sample("pow", "negative base", {{{5}}}, [](const Variables& x) { return pow(x[0], 3); }));
  add_unary(table, "exp", Range::normal, [](V x) { return exp(x); });
  add_unary(table, "log", Range::positive, [](V x) { return log(x); });
  add_unary(table, "sqrt", Range::positive, [](V x) { return sqrt(x); });
  add_unary(table, "tanh", Range::normal, [](V x) { return tanh(x); });
  add_unary(table, "sigmoid", Range::normal, [](V x) { return sigmoid(x); });
  add_unary(table, "relu", Range::away_from_zero, [](V x) { return relu(x); });
  add_unary(table, "gelu", Range::normal, [](V x) { return gelu(x); });
  add_unary(table, "gelu_tanh", Range::normal, [](V x) { return gelu_tanh(x); });
  add_unary(table, "silu", Range::normal, [](V x) { return silu(x); });
}

void add_reductions(std::vector<Sample>& table) {
  const auto add = [&](const std::string& name, Range range, auto f) {
    table.push_back(
        sample(name, "all axes", {{{2, 3}, range}}, [f](const Variables& x) { return f(x[0], Axes{}, false); }));
    table.push_back(
        sample(name, "last axis", {{{3, 4}, range}}, [f](const Variables& x) { return f(x[0], Axes{-1}, false); }));
    table.push_back(sample(name, "axes 0 and 2", {{{2, 3, 4}, range}}, [f](const Variables& x) {
      return f(x[0], Axes{0, 2}, false);
    }));
    table.push_back(
        sample(name, "kept axis", {{{4, 1, 3}, range}}, [f](const Variables& x) { return f(x[0], Axes{0}, true); }));
  };
  add("sum", Range::normal, [](const Variable& x, const Axes& axes, bool keep) { return sum(x, axes, keep); });
  add("mean", Range::normal, [](const Variable& x, const Axes& axes, bool keep) { return mean(x, axes, keep); });
  add("max", Range::distinct, [](const Variable& x, const Axes& axes, bool keep) { return max(x, axes, keep); });
  table.push_back(sample("sum", "size 0", {{{0, 3}}}, [](const Variables& x) { return sum(x[0], {0}); }));
}

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
  table.push_back(sample("matmul", "size 0, m = 0", {{{0, 3}}, {{3, 2}}},
                         [](const Variables& x) { return matmul(x[0], x[1]); }, {{"input 1", no_output}}));
  table.push_back(
      sample("matmul", "repeated input", {{{3, 3}}}, [](const Variables& x) { return matmul(x[0], x[0]); }));
}

void add_layout(std::vector<Sample>& table) {
  table.push_back(sample("reshape", "[2, 6] to [3, 4]", {{{2, 6}}}, [](const Variables& x) {
    return reshape(x[0], {3, -1});
  }));
  table.push_back(sample("permute", "three axes", {{{2, 3, 4}}}, [](const Variables& x) {
    return permute(x[0], {2, 0, -2});
  }));
  table.push_back(sample("concat", "axis 1", {{{2, 3}}, {{2, 1}}, {{2, 2}}}, [](const Variables& x) {
    return concat({x[0], x[1], x[2]}, 1);
  }));
  table.push_back(sample("concat", "repeated input", {{{2, 3}}}, [](const Variables& x) {
    return concat({x[0], x[0]}, 0);
  }));
  table.push_back(sample("concat", "size 0 and 1", {{{2, 0}}, {{2, 1}}}, [](const Variables& x) {
    return concat({x[0], x[1]}, 1);
  }));
  table.push_back(sample("slice", "size 0", {{{3, 2}}}, [](const Variables& x) { return slice(x[0], 1, 1, 1); },
                         {{"input 0", no_output}}));
  table.push_back(sample("slice", "size 1", {{{1, 1}}}, [](const Variables& x) { return slice(x[0], 1, 0, 1); }));
  table.push_back(
      sample("slice", "inner axis", {{{2, 5, 2}}}, [](const Variables& x) { return slice(x[0], 1, 1, -1); }));
  table.push_back(sample("slice", "axis 0, overlapping", {{{4, 2}}},
                         [](const Variables& x) { return slice(x[0], 0, 0, 3) * slice(x[0], 0, 1); }));
  table.push_back(sample("split", "two parts", {{{2, 5}}}, [](const Variables& x) {
    const auto [left, right] = split(x[0], 2, -1);
    return concat({exp(left), right}, 1);
  }));
  table.push_back(
      sample("split", "a part unused", {{{5, 2}}}, [](const Variables& x) { return split(x[0], 2, 0)[1]; }));
  table.push_back(sample("split3", "last axis", {{{2, 6}}}, [](const Variables& x) {
    const auto [q, k, v] = split3(x[0], -1);
    return q * k + v;
  }));
}

void add_lookup_and_noise(std::vector<Sample>& table) {
  table.push_back(sample("embedding", "repeated ids", {{{4, 3}}}, [](const Variables& x) {
    return embedding(x[0], Tensor::of<i32>({2, 3}, {1, 0, 1, 3, 1, 0}));
  }));
  table.push_back(sample("embedding", "size 0, no ids", {{{4, 3}}},
                         [](const Variables& x) { return embedding(x[0], Tensor::empty({0}, Dtype::i32)); },
                         {{"input 0", no_output}}));
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

void add_normalisation(std::vector<Sample>& table) {
  table.push_back(sample("softmax", "rows", {{{3, 5}}}, [](const Variables& x) { return softmax(x[0]); }));
  table.push_back(sample("softmax", "one element", {{{3, 1}}}, [](const Variables& x) { return softmax(x[0]); },
                         {{"input 0", "softmax over one element is always 1"}}));
  table.push_back(sample("softmax", "size 0", {{{0, 3}}}, [](const Variables& x) { return softmax(x[0]); }));
  table.push_back(sample("log_softmax", "rows", {{{3, 5}}}, [](const Variables& x) { return log_softmax(x[0]); }));
  table.push_back(sample("log_softmax", "one element", {{{3, 1}}}, [](const Variables& x) { return log_softmax(x[0]); },
                         {{"input 0", "the logarithm of softmax over one element is always 0"}}));
  table.push_back(sample("log_softmax", "size 0", {{{0, 3}}}, [](const Variables& x) { return log_softmax(x[0]); }));
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

void add_attention(std::vector<Sample>& table) {
  const Mask padded = Mask::causal() & Mask::padding(Tensor::of<i32>({2}, {3, 2}));
  const Mask sparse = Mask::allow(Tensor::of<i32>({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 1}));
  const auto add_softmax = [&](const std::string& variant, const Mask& mask) {
    table.push_back(sample("masked_softmax", variant, {{{2, 2, 3, 3}}},
                           [mask](const Variables& x) { return masked_softmax(x[0], mask); }));
  };
  add_softmax("everything", Mask());
  add_softmax("causal and padding", padded);
  add_softmax("table with an empty row", sparse);
  add_softmax("a window, the last query sees less", Mask::window(1) & Mask::padding(Tensor::of<i32>({2}, {3, 2})));
  const auto add_by_distance = [&](const std::string& variant, i64 n, i64 m) {
    table.push_back(sample("by_distance", variant, {{{2, n + m - 1}}},
                           [=](const Variables& x) { return by_distance(x[0], n, m); }));
  };
  add_by_distance("as many queries as keys", 3, 3);
  add_by_distance("more keys than queries", 2, 4);
  add_by_distance("more queries than keys", 4, 2);
  add_by_distance("one query, one key", 1, 1);
  table.push_back(
      sample("by_distance", "size 0, no head", {{{0, 3}}}, [](const Variables& x) { return by_distance(x[0], 2, 2); }));
  const auto add_biased = [&](const std::string& variant, const Shape& bias, const Mask& mask,
                              std::vector<DeclaredZero> zeros = {}) {
    table.push_back(sample(
        "attention", variant, {{{2, 2, 3, 4}}, {{2, 2, 3, 4}}, {{2, 2, 3, 2}}, {bias}},
        [mask](const Variables& x) { return attention(x[0], x[1], x[2], mask, 0, {}, x[3]).output; },
        std::move(zeros)));
  };
  add_biased("a bias by distance", {2, 5}, padded);
  add_biased("a bias for each pair", {1, 2, 3, 3}, Mask());
  table.push_back(sample("zero_padding", "lengths 3 and 2", {{{2, 2, 3, 2}}},
                         [padded](const Variables& x) { return zero_padding(x[0], padded); }));
  const auto add = [&](const std::string& variant, const Mask& mask, double p) {
    table.push_back(drawn_sample(
        "attention", variant, {{{2, 2, 3, 4}}, {{2, 2, 3, 4}}, {{2, 2, 3, 2}}},
        [mask, p](const Variables& x, const Draw& d) { return attention(x[0], x[1], x[2], mask, p, d).output; }));
  };
  add("everything", Mask(), 0);
  add("causal and padding", padded, 0);
  add("table with an empty row", sparse, 0);
  add("dropout", Mask::causal(), 0.4);
  const auto add_sizes = [&](const std::string& variant, i64 B, i64 n, i64 m, std::vector<DeclaredZero> zeros) {
    table.push_back(sample(
        "attention", variant, {{{B, 2, n, 4}}, {{B, 2, m, 4}}, {{B, 2, m, 2}}},
        [](const Variables& x) { return attention(x[0], x[1], x[2], Mask()).output; }, std::move(zeros)));
  };
  const std::string certain = "softmax over one key is always 1";
  add_sizes("more keys than queries", 2, 2, 4, {});
  add_sizes("one query, one key", 2, 1, 1, {{"input 0", certain}, {"input 1", certain}});
  add_sizes("size 0, no batch row", 0, 3, 3, {});
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
    add_elementwise(samples);
    add_reductions(samples);
    add_products(samples);
    add_layout(samples);
    add_lookup_and_noise(samples);
    add_normalisation(samples);
    add_attention(samples);
    add_losses(samples);
    add_fused(samples);
    return samples;
  }();
  return table;
}

}  // namespace orrery
