// Chapter 8. The samples of the operations in autograd/ops/fused/: their variants, masks, tiles and special cases.
//
// Attention's are in autograd/check/fused_attention_samples.cpp. All are separate from autograd/check/samples.cpp,
// which has the composed forms that chapters 2 to 6 explain. The tests of each fused operation compare it with its
// composed form; these samples check that its backward agrees with its own forward, also where it splits its work into
// chunks and tiles.
#include "autograd/check/sample_rows.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

namespace orrery::sample_rows {
namespace {

constexpr Draw fixed_draw{.seed = 5, .step = 1};

void add_linear(SampleTable& table) {
  const auto add = [&](const std::string& variant, std::vector<Input> inputs, RowRange rows = {},
                       std::vector<DeclaredZero> zeros = {}) {
    table.add("linear", variant, inputs, zeros,
              [rows](In x) { return linear(x[0], x[1], x.size() > 2 ? x[2] : Variable(), rows); });
  };
  add("three axes", {{{2, 3, 4}}, {{5, 4}}, {{5}}});
  add("no bias", {{{3, 4}}, {{2, 4}}});
  add("rows 1 to 3 of 5", {{{2, 3}}, {{5, 3}}, {{5}}}, {1, 3});
  add("rows 2 to 5 of 5, no bias", {{{2, 3}}, {{5, 3}}}, {2, 5});
  add("one axis", {{{4}}, {{3, 4}}, {{3}}});
  add("size 1", {{{1, 1}}, {{1, 1}}, {{1}}});
  add("size 0, no rows", {{{0, 3}}, {{2, 3}}, {{2}}}, {}, {{"input 1", no_output}, {"input 2", no_output}});
  table.add_long("linear", "long", {{{long_rows, 2}}, {{3, 2}}, {{3}}}, [](In x) { return linear(x[0], x[1], x[2]); });
  table.add("linear", "repeated input", {{{3, 3}}, {{3}}}, [](In x) { return linear(x[0], x[0], x[1]); });
  table.add("linear", "two ranges of one weight", {{{2, 3}}, {{5, 3}}, {{5}}}, [](In x) {
    const Variable left = linear(x[0], x[1], x[2], {0, 2}), right = linear(x[0], x[1], x[2], {2, 5});
    return concat({left * 2.0, right}, 1);
  });
}

// Biases of +-3 keep what ReLU sees away from its kink: a sum of 4 products of numbers from N(0, 1), divided by 8,
// stays below 3.
void add_activated(SampleTable& table) {
  const auto add_relu = [&](const std::string& variant, const Shape& x, double p,
                            std::vector<DeclaredZero> zeros = {}) {
    table.add("linear_relu", variant, {{x}, {{5, x[-1]}}, {{5}}}, zeros, [p](In in, const Draw& draw) {
      const Variable far = constant(Tensor::of<float>({5}, {3, -3, 3, 3, -3}).to(in[0].dtype()));
      return linear_relu(in[0] * 0.125, in[1], in[2] * 0.125 + far, p, draw);
    });
  };
  add_relu("three axes", {2, 3, 4}, 0);
  add_relu("dropout", {4, 4}, 0.3);
  add_relu("p 1", {2, 4}, 1,
           {{"input 0", "everything is dropped"},
            {"input 1", "everything is dropped"},
            {"input 2", "everything is dropped"}});
  add_relu("size 0, no rows", {0, 4}, 0.3, {{"input 1", no_output}, {"input 2", no_output}});
  table.add_long("linear_relu", "long",
                 {{{long_rows, 2}, Range::positive}, {{3, 2}, Range::positive}, {{3}, Range::positive}},
                 [](In x) { return linear_relu(x[0], x[1], x[2]); });
  table.add("linear_relu", "no bias", {{{3, 2}, Range::positive}, {{4, 2}, Range::positive}},
            [](In x) { return linear_relu(x[0], x[1], {}); });
}

void add_feed_forward(SampleTable& table) {
  using Function = Variable (*)(const Variable&, const Variable&, const Variable&, const Variable&, const Variable&,
                                double, const Draw&);
  const auto add_both = [&](const std::string& variant, std::vector<Input> inputs, double p,
                            const std::vector<DeclaredZero>& zeros = {}) {
    for (const auto& [name, f] : {std::pair<const char*, Function>{"gelu_feed_forward", gelu_feed_forward},
                                  {"gelu_tanh_feed_forward", gelu_tanh_feed_forward}}) {
      table.add(name, variant, inputs, zeros, [p, f = f](In x, const Draw& draw) {
        return x.size() == 5 ? f(x[0], x[1], x[2], x[3], x[4], p, draw) : f(x[0], x[1], {}, x[2], {}, p, draw);
      });
    }
  };
  add_both("three axes", {{{2, 3, 4}}, {{5, 4}}, {{5}}, {{3, 5}}, {{3}}}, 0);
  add_both("dropout", {{{4, 3}}, {{9, 3}}, {{9}}, {{2, 9}}, {{2}}}, 0.3);
  add_both("no bias", {{{3, 4}}, {{2, 4}}, {{4, 2}}}, 0);
  add_both("size 0, no rows", {{{0, 3}}, {{2, 3}}, {{2}}, {{3, 2}}, {{3}}}, 0.3,
           {{"input 1", no_output}, {"input 2", no_output}, {"input 3", no_output}, {"input 4", no_output}});
  for (const auto& [name, f] : {std::pair<const char*, Function>{"gelu_feed_forward", gelu_feed_forward},
                                {"gelu_tanh_feed_forward", gelu_tanh_feed_forward}}) {
    const auto run = [f = f](In x) { return f(x[0], x[1], x[2], x[3], x[4], 0, {}); };
    table.add(name, "tails", {{{4, 3}, Range::tails}, {{4, 3}}, {{4}}, {{2, 4}}, {{2}}}, run);
    table.add_long(name, "long", {{{long_rows, 2}}, {{3, 2}}, {{3}}, {{2, 3}}, {{2}}}, run);
  }
  table.add("gelu_feed_forward", "repeated input", {{{3, 3}}, {{3}}},
            [](In x) { return gelu_feed_forward(x[0], x[0], x[1], x[0], x[1]); });
  table.add("gelu_feed_forward", "p 1", {{{2, 3}}, {{2, 3}}, {{2}}, {{3, 2}}, {{3}}},
            {{"input 0", "everything is dropped"},
             {"input 1", "everything is dropped"},
             {"input 2", "everything is dropped"},
             {"input 3", "everything is dropped"}},
            [](In x, const Draw& draw) { return gelu_feed_forward(x[0], x[1], x[2], x[3], x[4], 1, draw); });
}

void add_linear_cross_entropy(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Shape& x, const Tensor& targets, CrossEntropyOptions options,
                       std::vector<DeclaredZero> zeros = {}) {
    table.add("linear_cross_entropy", variant, {{x}, {{5, 3}}, {{5}}}, zeros,
              [=](In in) { return linear_cross_entropy(in[0], in[1], in[2], targets, options); });
  };
  const Tensor targets = Tensor::of<i32>({2, 2}, {3, 0, -100, 3});
  add("mean", {2, 2, 3}, targets, {});
  add("smoothing over all classes, sum", {2, 2, 3}, targets, {.label_smoothing = 0.2, .reduction = Reduction::sum});
  add("smoothing over wrong classes", {2, 2, 3}, targets,
      {.label_smoothing = 0.2, .smoothing = Smoothing::wrong_classes, .reduction = Reduction::divisor, .divisor = 3});
  const std::string nothing = "no target counts";
  add("nothing counts", {2, 3}, Tensor::of<i32>({2}, {-100, -100}), {},
      {{"input 0", nothing}, {"input 1", nothing}, {"input 2", nothing}});
  add("size 0, no rows", {0, 3}, Tensor::empty({0}, Dtype::i32), {}, {{"input 1", nothing}, {"input 2", nothing}});
  table.add_long("linear_cross_entropy", "long", {{{long_rows, 2}}, {{3, 2}}, {{3}}}, [](In x) {
    return linear_cross_entropy(x[0], x[1], x[2], spread_ids({long_rows}, 3), {.reduction = Reduction::sum});
  });
  table.add("linear_cross_entropy", "no bias", {{{2, 3}}, {{5, 3}}}, [](In x) {
    return linear_cross_entropy(x[0], x[1], {}, Tensor::of<i32>({2}, {4, 1}));
  });
  table.add("linear_cross_entropy", "repeated input", {{{3, 3}}}, [](In x) {
    return linear_cross_entropy(x[0], x[0], {}, Tensor::of<i32>({3}, {2, 0, 1}));
  });
}

void add_residual(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Shape& shape, double p) {
    table.add("residual", variant, {{shape}, {shape}},
              [p](In x, const Draw& draw) { return residual(x[0], x[1], p, draw); });
  };
  add("p 0", {2, 3}, 0);
  add("dropout", {3, 11}, 0.3);
  add("size 0", {0, 3}, 0.3);
  table.add_long("residual", "long", {{{long_rows, 3}}, {{long_rows, 3}}},
                 [](In x) { return residual(x[0], x[1], 0.3, fixed_draw); });
  table.add("residual", "p 1", {{{2, 3}}, {{2, 3}}}, {{"input 1", "everything is dropped"}},
            [](In x, const Draw& draw) { return residual(x[0], x[1], 1, draw); });
  table.add("residual", "repeated input", {{{2, 3}}},
            [](In x, const Draw& draw) { return residual(x[0], x[0], 0.3, draw); });
}

void add_residual_norm(SampleTable& table) {
  const auto add = [&](const std::string& variant, const Shape& shape, LayerNormForm form, double p,
                       std::vector<DeclaredZero> zeros = {}) {
    table.add("residual_norm", variant, {{shape}, {shape}, {{shape[-1]}}, {{shape[-1]}}}, zeros,
              [=](In x, const Draw& draw) {
                return residual_norm(x[0], x[1], x[2], x[3], {.eps = 1e-2, .form = form, .p = p, .draw = draw});
              });
  };
  add("root of variance plus eps", {2, 2, 5}, LayerNormForm::root_of_variance_plus_eps, 0);
  add("std plus eps", {4, 5}, LayerNormForm::std_plus_eps, 0);
  add("unbiased std plus eps", {4, 5}, LayerNormForm::unbiased_std_plus_eps, 0);
  add("dropout", {2, 2, 9}, LayerNormForm::root_of_variance_plus_eps, 0.3);
  add("dropout, unbiased std plus eps", {3, 9}, LayerNormForm::unbiased_std_plus_eps, 0.3);
  add("size 0", {0, 3}, LayerNormForm::root_of_variance_plus_eps, 0.3,
      {{"input 2", no_output}, {"input 3", no_output}});
  table.add_long("residual_norm", "long", {{{long_rows, 4}}, {{long_rows, 4}}, {{4}}, {{4}}}, [](In x) {
    return residual_norm(x[0], x[1], x[2], x[3], {.eps = 1e-2, .p = 0.1, .draw = fixed_draw});
  });
  table.add("residual_norm", "no weight, no bias", {{{3, 4}}, {{3, 4}}},
            [](In x) { return residual_norm(x[0], x[1], {}, {}); });
  table.add("residual_norm", "repeated input", {{{3, 4}}, {{4}}}, [](In x, const Draw& draw) {
    return residual_norm(x[0], x[0], x[1], {},
                         {.eps = 1e-2, .form = LayerNormForm::std_plus_eps, .p = 0.3, .draw = draw});
  });
}

void add_embedding_sum(SampleTable& table) {
  const Tensor ids = Tensor::of<i32>({2, 3}, {1, 0, 1, 3, 1, 0});
  const auto add = [&](const std::string& variant, const Tensor& which, i64 rows, double p,
                       std::vector<DeclaredZero> zeros = {}) {
    table.add("embedding_sum", variant, {{{4, 5}}, {{rows, 5}}}, zeros,
              [=](In x, const Draw& draw) { return embedding_sum(x[0], which, 2.5, x[1], p, draw); });
  };
  add("learned positions, repeated ids", ids, 3, 0);
  add("more positions than places", ids, 7, 0);
  add("dropout", ids, 4, 0.3);
  add("size 0, no ids", Tensor::empty({0, 3}, Dtype::i32), 3, 0.3, {{"input 0", no_output}, {"input 1", no_output}});
  table.add_long("embedding_sum", "long", {{{5, 2}}, {{4, 2}}}, [](In x) {
    return embedding_sum(x[0], spread_ids({long_rows / 4, 4}, 5), 1.5, x[1], 0.3, fixed_draw);
  });
  table.add("embedding_sum", "constant positions", {{{4, 5}}}, [ids](In x, const Draw& draw) {
    Rng rng(2);
    return embedding_sum(x[0], ids, 1.5, constant(randn({3, 5}, rng, x[0].dtype())), 0.3, draw);
  });
  table.add("embedding_sum", "one table for both", {{{4, 5}}},
            [ids](In x) { return embedding_sum(x[0], ids, 1.5, x[0]); });
}

}  // namespace

void add_fused(SampleTable& table) {
  add_linear(table);
  add_activated(table);
  add_feed_forward(table);
  add_linear_cross_entropy(table);
  add_residual(table);
  add_residual_norm(table);
  add_embedding_sum(table);
  add_fused_attention(table);
}

}  // namespace orrery::sample_rows
