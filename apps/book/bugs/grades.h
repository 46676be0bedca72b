// Chapter 4. Grades the programs with a mistake, which a student repairs: each part asks about the bug of its number,
// EXERCISE, whose file was read before.
#if EXERCISE == 0  // a worked example, RMS norm

// dx of the row (3, 4, 0, 0), where only y_0 counts.
Tensor gradient() {
  const Variable x = parameter(Tensor::of<double>({1, 4}, {3, 4, 0, 0}));
  backward(my_rms_norm(x), Tensor::of<double>({1, 4}, {1, 0, 0, 0}));
  return x.gradient();
}

void grade(Grader& g) {
  g.equal("y of (3, 4, 0, 0)", Tensor::of<double>({1, 4}, {1.2, 1.6, 0, 0}), "The root of the mean square is 2.5.", [] {
    return my_rms_norm(constant(Tensor::of<double>({1, 4}, {3, 4, 0, 0}))).value();
  });
  g.gradients("the gradients of rows of one number", "y is 1 or -1.", [] {
    Rng rng(4);
    // + x, since the gradient of y alone is 0 here, which the check takes for a failure.
    return checkable([](const Variable& x) { return my_rms_norm(x) + x; }, {randn({3, 1}, rng, f64)});
  });
  g.equal("dx_0 of (3, 4, 0, 0) where only y_0 counts", 0.256, "x_0 reaches y_0 directly, and through the mean square.",
          [] { return gradient().at(0); });
  g.equal("dx_1 of (3, 4, 0, 0) where only y_0 counts", -0.192, "x_1 reaches y_0 through the mean square alone.",
          [] { return gradient().at(1); });
  g.prove("the whole proof", "Is the error larger in longer rows?", sample_of("rms_norm", my_rms_norm, {{3, 5}}));
}

#elif EXERCISE == 2 || EXERCISE == 19  // attention with a mask

// Attention of the same random numbers, by the library or by the copy. Q is V, too.
AttentionResult attended(const Mask& mask, bool by_the_library) {
  Rng rng(2);
  const Variable Q = constant(randn({2, 1, 4, 3}, rng, f64)), K = constant(randn({2, 1, 4, 3}, rng, f64));
  return by_the_library ? attention(Q, K, Q, mask) : my_attention(Q, K, Q, mask);
}

// A sequence that is all padding, so that no query sees a key: the weights and dL/dQ, dL/dK, dL/dV of (sum of the
// output), one after the other.
Tensor without_keys() {
  Rng rng(3);
  std::vector<Variable> heads;
  for (int i = 0; i < 3; ++i) heads.push_back(parameter(randn({1, 1, 2, 2}, rng, f64)));
  const AttentionResult result = my_attention(heads[0], heads[1], heads[2], Mask::padding(Tensor::of<i32>({1}, {0})));
  backward(sum(result.output));
  std::vector<Tensor> all{result.weights.value()};
  for (const Variable& head : heads) all.push_back(head.gradient());
  return concat(all, 0);
}

void grade(Grader& g) {
  const Mask padded = Mask::causal() & Mask::padding(Tensor::of<i32>({2}, {4, 2}));
  g.equal("its output without a mask", attended(Mask(), true).output.value(),
          "Without a mask every key counts, and the scores are divided by sqrt(d_k).",
          [] { return attended(Mask(), false).output.value(); });
  g.equal("each row of weights adds up to 1", full({2, 1, 4}, 1.0, f64), "Over which keys is the softmax's sum taken?",
          [&] { return sum(attended(padded, false).weights.value(), {-1}); });
  g.equal("its weights with a causal mask and padding", attended(padded, true).weights.value(),
          "Which weight has a hidden key, and what does it do to the weights of the others?",
          [&] { return attended(padded, false).weights.value(); });
  g.equal("weights and gradients of queries that see no key", zeros({4, 1, 2, 2}, f64),
          "A hidden key has the weight 0, even if no other key is left to share the attention.", without_keys);
  g.no_leak("no position sees what comes after it",
            "A hidden key must not be in any sum: neither that of the values, nor that of the exponentials.", [] {
              Rng rng(1);
              const auto output = [](const Tensor& x) {
                const Variable heads = constant(x.reshape({2, 1, 4, 3}));
                return my_attention(heads, heads, heads, Mask::causal()).output.value().reshape({2, 4, 3});
              };
              return nn::LeakCheck{.name = "attention",
                                   .input = randn({2, 4, 3}, rng, f64),
                                   .output = output,
                                   .may_move = nn::within_sequence(true)};
            });
  g.prove("the whole proof", "It passed before: what did you change besides the masked scores?",
          sample_of("attention",
                    [padded](const Variable& Q, const Variable& K, const Variable& V) {
                      return my_attention(Q, K, V, padded).output;
                    },
                    {{2, 1, 4, 3}, {2, 1, 4, 3}, {2, 1, 4, 3}}));
}

#elif EXERCISE == 4 || EXERCISE == 13  // a linear layer

void grade(Grader& g) {
  Rng rng(3);
  const Variable x = constant(randn({2, 3, 4}, rng, f64)), w = constant(randn({5, 4}, rng, f64));
  const Variable b = constant(randn({5}, rng, f64));
  g.equal("its value", linear(x, w, b).value(), "The forward was right: x W^T + b.",
          [&] { return my_linear(x, w, b).value(); });
  g.prove("the whole proof, with as many positions as outputs",
          "Which part failed, and for which of the three inputs? How is this input used in y?",
          sample_of("linear", my_linear, {{2, 3, 4}, {3, 4}, {3}}));
  g.prove("the whole proof, with fewer positions than outputs",
          "Which part failed, and for which of the three inputs? How is this input used in y?",
          sample_of("linear", my_linear, {{2, 3, 4}, {5, 4}, {5}}));
}

#elif EXERCISE == 6  // an embedding

// The gradient of the sum of all outputs, for a weight of 4 rows of 2 numbers.
Tensor gradient_for(const std::vector<i32>& tokens) {
  const Variable weight = parameter(zeros({4, 2}, f64));
  const i64 n = static_cast<i64>(tokens.size());
  backward(my_embedding(weight, Tensor::of<i32>({1, n}, tokens)), full({1, n, 2}, 1.0, f64));
  return weight.gradient();
}

void grade(Grader& g) {
  g.equal("the gradient for the tokens 1 and 3", Tensor::of<double>({4, 2}, {0, 0, 1, 1, 0, 0, 1, 1}),
          "A row that no token reads has a gradient of 0.", [] {
            return gradient_for({1, 3});
          });
  g.equal("the gradient for the tokens 1, 1, 3 and 1", Tensor::of<double>({4, 2}, {0, 0, 3, 3, 0, 0, 1, 1}),
          "What becomes of the gradients of a value that is used more than once?", [] {
            return gradient_for({1, 1, 3, 1});
          });
  g.prove("the whole proof", "Compare the wrong rows with how often their tokens occur.", [] {
    const auto embed = [](const Variable& w) { return my_embedding(w, Tensor::of<i32>({2, 3}, {1, 0, 1, 3, 1, 0})); };
    return sample_of("embedding", embed, {{4, 3}});
  });
}

#elif EXERCISE == 7  // layer norm

void grade(Grader& g) {
  Rng rng(7);
  const Variable x = constant(randn({3, 5}, rng, f64)), w = constant(randn({5}, rng, f64));
  const Variable b = constant(randn({5}, rng, f64));
  const Tensor dy = randn({3, 5}, rng, f64);
  g.equal("its value", layer_norm(x, w, b, 1e-5).value(), "The forward was right.",
          [&] { return my_layer_norm(x, w, b, 1e-5).value(); });
  g.equal("the sum of each row of dx", zeros({3}, f64), "Add 1 to every x of a row: what happens to y?", [&] {
    const Variable in = parameter(x.value().clone());
    backward(my_layer_norm(in, w, b, 1e-5), dy);
    return sum(in.gradient(), {-1});
  });
  g.prove("the whole proof", "On how many ways does one x reach the outputs of its row? Each gives a term of dx.", [] {
    const auto norm = [](const Variable& in, const Variable& weight, const Variable& bias) {
      return my_layer_norm(in, weight, bias, 1e-5);
    };
    return sample_of("layer_norm", norm, {{3, 5}, {5}, {5}});
  });
}

#elif EXERCISE == 8  // the exponential function

void grade(Grader& g) {
  g.equal("its gradient at 0", 1, "The derivative of e^x is e^x.", [] {
    const Variable x = parameter(zeros({1}, f64));
    backward(my_exp(x));
    return x.gradient().item();
  });
  g.prove(
      "the whole proof",
      "Which part failed? Read what it does in autograd/check/proof.h. What sees that a kept tensor was written to?",
      sample_of("exp", my_exp, {{3, 4}}));
}

#elif EXERCISE == 9  // the scores of attention

void grade(Grader& g) {
  Rng rng(9);
  const Variable Q = constant(randn({2, 3, 4}, rng, f64)), K = constant(randn({2, 5, 4}, rng, f64));
  g.equal("its value", matmul(Q, K, Trans::b).value() * 0.5, "The forward was right: d_k is 4 here.",
          [&] { return my_scores(Q, K).value(); });
  g.prove("the whole proof, d_k = 4", "Is the ratio the same everywhere? Which number of the forward is it?",
          sample_of("scores", my_scores, {{2, 3, 4}, {2, 5, 4}}));
  g.prove("the whole proof, d_k = 3", "How does the ratio change with d_k?",
          sample_of("scores", my_scores, {{2, 3, 3}, {2, 5, 3}}));
}

#elif EXERCISE == 11  // adding a row to every row

// The gradient of b, where a has this many rows and dy is 1 everywhere.
Tensor gradient_of_b(i64 rows) {
  const Variable a = parameter(zeros({rows, 2}, f64)), b = parameter(zeros({2}, f64));
  backward(my_add(a, b), full({rows, 2}, 1.0, f64));
  return b.gradient();
}

void grade(Grader& g) {
  g.equal("the gradient of b, one row", full({2}, 1.0, f64), "y_0j grows with b_j.", [] { return gradient_of_b(1); });
  g.equal("the gradient of b_0, three rows", 3, "How often is each number of b used?",
          [] { return gradient_of_b(3).at(0); });
  g.prove("the whole proof",
          "Which of the two inputs is wrong, and by how much does the answer depend on the number of rows?",
          sample_of("add", my_add, {{3, 4}, {4}}));
}

#elif EXERCISE == 12  // a causal mask

// 1 where query i (down) may see key j (across).
Tensor table(i64 T) {
  const Mask mask = causal_mask(T);
  Tensor seen = zeros({T, T}, f64);
  for (i64 i = 0; i < T; ++i) {
    for (i64 j = 0; j < T; ++j) seen(i, j) = mask.allowed(0, 0, i, j, T, T) ? 1 : 0;
  }
  return seen;
}

void grade(Grader& g) {
  g.no_leak("attention with it", "Find the marks X in the leak matrix: how far from the diagonal are they?", [] {
    Rng rng(1);
    const auto output = [](const Tensor& x) {
      const Variable heads = constant(x.reshape({2, 1, 5, 3}));
      return attention(heads, heads, heads, causal_mask(5)).output.value().reshape({2, 5, 3});
    };
    return nn::LeakCheck{.name = "attention",
                         .input = randn({2, 5, 3}, rng, f64),
                         .output = output,
                         .may_move = nn::within_sequence(true),
                         .all_must_move = true};
  });
  g.equal("the table of one position", full({1, 1}, 1.0, f64), "It sees itself.", [] { return table(1); });
  g.equal("the table of three positions", Tensor::of<double>({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}),
          "Write the table down, with queries as rows.", [] { return table(3); });
}

#elif EXERCISE == 15  // attention

// The weights that one query gives to two keys. Only the first of the d_k numbers of the query and of the first key is
// not 0; the second key is 0.
Tensor weights_of(i64 d_k, double query, double first_key, i64 d_v = 1) {
  Tensor q = zeros({1, 1, 1, d_k}, f64), k = zeros({1, 1, 2, d_k}, f64);
  q.write<double>()[0] = query;
  k.write<double>()[0] = first_key;
  return my_attention(constant(q), constant(k), constant(zeros({1, 1, 2, d_v}, f64)), Mask()).weights.value();
}

void grade(Grader& g) {
  g.equal("the weights of two keys, d_k = 1", Tensor::of<double>({1, 1, 1, 2}, {0.75, 0.25}),
          "The scores are log 3 and 0.", [] { return weights_of(1, 1, std::log(3.0)); });
  g.equal("the same, with values of four numbers", Tensor::of<double>({1, 1, 1, 2}, {0.75, 0.25}),
          "How long the values are does not change the weights.", [] { return weights_of(1, 1, std::log(3.0), 4); });
  g.equal("the weights of two keys, d_k = 4", Tensor::of<double>({1, 1, 1, 2}, {0.75, 0.25}),
          "Compute the two scores by hand, from the paper's equation. Which of its parts does not matter for d_k = 1?",
          [] { return weights_of(4, 2, std::log(3.0)); });
  g.prove("the whole proof", "It passed before: let the tape differentiate.", [] {
    const auto output = [](const Variable& Q, const Variable& K, const Variable& V) {
      return my_attention(Q, K, V, Mask::causal()).output;
    };
    return sample_of("attention", output, {{2, 1, 3, 4}, {2, 1, 3, 4}, {2, 1, 3, 2}});
  });
}

#elif EXERCISE == 16  // the hyperbolic tangent

double slope_at(double x) {
  const Variable in = parameter(full({}, x, f64));
  backward(my_tanh(in));
  return in.gradient().item();
}

void grade(Grader& g) {
  g.equal("its slope at 0", 1, "The slope is largest where x is 0.", [] { return slope_at(0); });
  g.equal("its slope at log 2", 0.64,
          "tanh(log 2) is 0.6. In which of the two, x or y, is the formula of the derivative simple?",
          [] { return slope_at(std::log(2.0)); });
  g.check("its slope at 3 is positive", "tanh never falls.", [] { return slope_at(3) > 0; });
  g.prove("the whole proof", "How does the error grow with |x|?", sample_of("tanh", my_tanh, {{3, 4}}));
}

#elif EXERCISE == 17  // the largest number

// The sum of each row of dx, where dy is 1.
Tensor row_sums(const Tensor& x) {
  const Variable in = parameter(x.clone());
  const Variable y = my_max(in, {-1}, false);
  backward(y, full(y.shape(), 1.0, f64));
  return sum(in.gradient(), {-1});
}

void grade(Grader& g) {
  g.equal("the sum of each row of dx, all numbers different", full({2}, 1.0, f64),
          "Add h to a whole row: by how much does its largest number grow?", [] {
            return row_sums(Tensor::of<double>({2, 3}, {1, 2, 3, 6, 5, 4}));
          });
  g.equal(
      "the sum of each row of dx, some numbers equal", full({2}, 1.0, f64),
      "Add h to a whole row: by how much does its largest number grow, and does it matter how many are the largest?",
      [] {
        return row_sums(Tensor::of<double>({2, 3}, {1, 3, 3, 5, 5, 5}));
      });
  g.prove("the whole proof", "It passed before: where only one number is the largest, nothing changes.",
          sample_of("max", [](const Variable& x) { return my_max(x, {-1}, true); }, {{3, 4}}));
}

#elif EXERCISE == 18  // dropout

void grade(Grader& g) {
  const Draw draw{.seed = 5, .step = 1};
  Rng rng(18);
  const Tensor x = randn({4, 5}, rng, f64);
  g.equal("its value", dropout(constant(x), 0.4, draw).value(), "The forward was right.",
          [&] { return my_dropout(constant(x), 0.4, draw).value(); });
  g.equal("how many numbers reach y and get no gradient, or do not and get one", 0,
          "A number that forward set to 0 has no influence. Where is it decided which numbers these are?", [&] {
            const Variable in = parameter(x.clone());
            const Variable y = my_dropout(in, 0.4, draw);
            backward(y, full({4, 5}, 1.0, f64));
            double count = 0;
            for (i64 i = 0; i < x.count(); ++i) count += (y.value().at(i) == 0) != (in.gradient().at(i) == 0);
            return count;
          });
  g.prove("the whole proof", "Compare where the analytic gradient is 0 with where the numeric one is.",
          sample_of("dropout", [draw](const Variable& in) { return my_dropout(in, 0.3, draw); }, {{3, 4}}));
}

#elif EXERCISE == 20  // cross entropy

// The gradient for rows of logits (0, log 2, log 5): the probabilities are 1/8, 2/8 and 5/8.
Tensor gradient_for(const std::vector<i32>& targets) {
  const i64 rows = static_cast<i64>(targets.size());
  const Tensor row = Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)});
  const Variable logits = parameter(broadcast_to(row, {rows, 3}));
  backward(my_cross_entropy(logits, Tensor::of<i32>({rows}, targets)));
  return logits.gradient();
}

void grade(Grader& g) {
  g.equal("dx of two rows that count", Tensor::of<double>({2, 3}, {0.0625, -0.375, 0.3125, 0.0625, 0.125, -0.1875}),
          "Softmax minus 1 at the target, as a mean.", [] {
            return gradient_for({1, 2});
          });
  g.equal("dx of four rows, of which two count",
          Tensor::of<double>({4, 3}, {0, 0, 0, 0.0625, -0.375, 0.3125, 0, 0, 0, 0.0625, 0.125, -0.1875}),
          "The loss of these four rows is the loss of the two rows before. Its gradient, too.", [] {
            return gradient_for({-100, 1, -100, 2});
          });
  g.equal("dx if no row counts", zeros({2, 3}, f64), "Then the loss is 0 for all logits. And what is 0 times 1 / 0?",
          [] {
            return gradient_for({-100, -100});
          });
  g.prove("the whole proof", "Is the ratio the same everywhere? Of which two counts is it the quotient?", [] {
    const auto loss = [](const Variable& x) { return my_cross_entropy(x, Tensor::of<i32>({2, 2}, {1, 0, -100, 3})); };
    return sample_of("cross_entropy", loss, {{2, 2, 4}});
  });
}

#elif EXERCISE == 27  // Adam for several numbers

using Numbers = std::vector<double>;

// Where numbers that begin at 0 are after these steps, at rate 1.
Tensor after_steps(const std::vector<Numbers>& gradients) {
  MyAdam adam;
  Numbers p(gradients[0].size());
  for (const Numbers& g : gradients) adam.step(p, g, 1);
  Tensor result = zeros({static_cast<i64>(p.size())}, f64);
  for (size_t i = 0; i < p.size(); ++i) result.set(static_cast<i64>(i), p[i]);
  return result;
}

// The same by the library.
Tensor after_steps_of_the_library(const std::vector<Numbers>& gradients) {
  const i64 count = static_cast<i64>(gradients[0].size());
  const Variable p = parameter(zeros({count}, f64), "p");
  optim::Adam adam({p});
  for (const Numbers& numbers : gradients) {
    Tensor g = zeros({count}, f64);
    for (i64 i = 0; i < count; ++i) g.set(i, numbers[static_cast<size_t>(i)]);
    backward(p, g);
    adam.step(1);
  }
  return p.value();
}

void grade(Grader& g) {
  const std::vector<Numbers> one{{4}, {1}, {-2}, {0.5}}, three{{1, 4, -2}, {2, 4, 0}, {1, -1, -2}, {0, 3, 1}};
  g.equal("the first step of one number", {Tensor::of<double>({1}, {-1}), 1e-6},
          "In the first step m_hat is g, and v_hat is g^2. Which step is the first, 0 or 1?",
          [] { return after_steps({{4}}); });
  g.equal("the first step of three numbers", {Tensor::of<double>({3}, {-1, -1, 1}), 1e-6},
          "Each has its own m and v. Write down the two corrections with which each number moves.", [] {
            return after_steps({{1, 4, -2}});
          });
  g.equal("four steps of one number", {after_steps_of_the_library(one), 1e-6},
          "The corrections fade from step to step.", [=] { return after_steps(one); });
  g.equal("four steps of three numbers", {after_steps_of_the_library(three), 1e-6},
          "How often may t grow in four steps?", [=] { return after_steps(three); });
}

#else  // 29 and later
#include "apps/book/bugs/grades_of_steps.h"

#endif
