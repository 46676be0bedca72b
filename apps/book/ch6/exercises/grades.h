// Chapter 6. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // a causal mask

void grade(Grader& g) {
  g.equal("later keys that the four queries see", 0, "Which of the two allows, 1 or 0?", [] {
    const Tensor allowed = my_causal_mask(4, 4);
    double later = 0;
    for (i64 i = 0; i < 4; ++i)
      for (i64 j = i + 1; j < 4; ++j) later += allowed(i, j);
    return later;
  });
  g.equal("four queries and four keys", Tensor::of<i32>({4, 4}, {1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1}),
          "Does a query see itself?", [] { return my_causal_mask(4, 4); });
  g.equal("two queries after three earlier tokens", Tensor::of<i32>({2, 5}, {1, 1, 1, 1, 0, 1, 1, 1, 1, 1}),
          "With n = 2 and m = 5, query 0 is the fourth token of five. Which position does query i have?",
          [] { return my_causal_mask(2, 5); });
  g.equal(
      "the weights of attention under it",
      [] {
        Rng rng(6);
        const Variable scores = constant(randn({1, 1, 3, 4}, rng, f64));
        return masked_softmax(scores, Mask::causal()).value();
      }(),
      "Each row of weights adds up to 1 over the keys that its query sees.",
      [] {
        Rng rng(6);
        const Variable scores = constant(randn({1, 1, 3, 4}, rng, f64));
        return masked_softmax(scores, Mask::allow(my_causal_mask(3, 4))).value();
      });
}

#elif EXERCISE == 2  // scaled dot-product attention

// For random queries and keys of 256 columns. Where V is the identity, the result is the weights.
double largest_weight() {
  Rng rng(6);
  const Variable q = constant(randn({8, 256}, rng, f64)), k = constant(randn({16, 256}, rng, f64));
  Tensor identity = zeros({16, 16}, f64);
  for (i64 i = 0; i < 16; ++i) identity(i, i) = 1;
  return max(my_attention(q, k, constant(identity)).value()).item();
}

void grade(Grader& g) {
  const Tensor Q = Tensor::of<double>({3, 2}, {1, 0, 0, 2, 1, 1}), V = Tensor::of<double>({3, 2}, {2, 0, 0, 1, 1, 1});
  const double e = std::exp(1 / std::sqrt(2.0)), total = 2 * e + 1;  // scores 1, 0, 1 before they are divided
  g.equal("where all values are equal, the result is that value", full({2, 3}, 1, f64),
          "The weights of one query add up to 1. Which axis does softmax run over?", [] {
            Rng rng(6);
            const Variable q = constant(randn({2, 4}, rng, f64)), k = constant(randn({5, 4}, rng, f64));
            return my_attention(q, k, constant(full({5, 3}, 1, f64))).value();
          });
  g.equal("the same queries and keys with longer values", zeros({3, 2}, f64),
          "How long the values are does not change the weights. Which size is d_k?", [&] {
            const Variable longer = constant(concat({V, V, V}, 1));
            return slice(my_attention(constant(Q), constant(Q), longer).value(), 1, 0, 2) -
                   my_attention(constant(Q), constant(Q), constant(V)).value();
          });
  g.check(
      "with 256 columns no key gets nearly all of the weight",
      "The dot product of two long vectors is large, so that softmax is nearly one-hot. What does the paper do about "
      "it?",
      [] { return largest_weight() < 0.9; });
  g.equal("the first of three queries", Tensor::of<double>({1, 2}, {3 * e / total, (1 + e) / total}),
          "These are the numbers of head 0 in the chapter. The scores are divided, but by which number?",
          [&] { return my_attention(constant(Q), constant(Q), constant(V)).value().rows(0, 1); });
  const double log2 = std::log(2.0), log3 = std::log(3.0);
  const Tensor queries = Tensor::of<double>({2, 4}, {2, 0, 0, 0, 0, 2, 0, 0});
  const Tensor keys =
      Tensor::of<double>({5, 4}, {log3, 0, 0, 0, log2, 0, 0, 0, 0, 0, 0, 0, 0, 2 * log2, 0, 0, 0, 0, 0, 0});
  const Tensor values = Tensor::of<double>({5, 3}, {8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 8, 8, 0, 0});
  g.equal("two queries, five keys, d_k = 4, d_v = 3", Tensor::of<double>({2, 3}, {4, 2, 2, 2, 1, 5}),
          "The dot products are 2 log 3, 2 log 2, 0, 0, 0 and 0, 0, 0, 4 log 2, 0.",
          [&] { return my_attention(constant(queries), constant(keys), constant(values)).value(); });
  g.gradients("the gradients of Q, K and V",
              "Stay with Variables from beginning to end: a Tensor taken out of one has no gradient.", [] {
                Rng rng(6);
                const auto random = [&](i64 rows, i64 columns) { return randn({rows, columns}, rng, f64); };
                const std::vector<Tensor> inputs{random(2, 4), random(5, 4), random(5, 3)};
                return checkable(
                    [](const Variable& q, const Variable& k, const Variable& v) { return my_attention(q, k, v); },
                    inputs);
              });
}

#elif EXERCISE == 4  // the backward of attention

void grade(Grader& g) {
  constexpr i64 n = 2, m = 3, d_k = 4, d_v = 5;
  Rng rng(6);
  const Tensor Q = randn({n, d_k}, rng, f64), K = randn({m, d_k}, rng, f64), V = randn({m, d_v}, rng, f64);
  const Tensor dO = randn({n, d_v}, rng, f64);
  // The gradient of input `which` by the student's backward, or by the tape of the operations it is made of.
  const auto gradient = [=](size_t which, bool by_student) {
    const std::vector<Variable> x{parameter(Q.clone()), parameter(K.clone()), parameter(V.clone())};
    const Variable scores = matmul(x[0], x[1], Trans::b) * (1 / std::sqrt(static_cast<double>(d_k)));
    backward(by_student ? my_attention(x[0], x[1], x[2]) : matmul(softmax(scores), x[2]), dO);
    return x[which].gradient();
  };
  g.check("backward of 2 queries and 3 keys has no error",
          "Write the shapes of dS, Q and K beside each other. Which products fit, and which only after a transpose?",
          [=] { return gradient(0, true).defined(); });
  g.equal("dV", gradient(2, false), "O = P V: what is dV for this product?", [=] { return gradient(2, true); });
  g.check("where all keys are equal to 1, dQ is 0: each row of dS adds up to 0",
          "The weights of a row always add up to 1. What does softmax subtract from dP?", [=] {
            const Variable q = parameter(Q.clone());
            backward(my_attention(q, constant(full({m, d_k}, 1, f64)), constant(V)), dO);
            return sum_of_squares(q.gradient()) < 1e-24;
          });
  g.equal("dQ", gradient(0, false),
          "From dO to dP, from dP to dS by softmax, from dS to dQ. S is Q K^T times a factor.",
          [=] { return gradient(0, true); });
  g.equal("dK", gradient(1, false), "From dS to dK: k_j is used in the scores of every query.",
          [=] { return gradient(1, true); });
  g.prove("the whole proof", "Only what is Saved may be read in backward, and nothing may be written to it.",
          sample_of("my_attention", my_attention, {{2, 4}, {3, 4}, {3, 5}}));
}

#elif EXERCISE == 5  // the sinusoidal encodings

void grade(Grader& g) {
  g.equal("position 0", Tensor::of<double>({1, 4}, {0, 1, 0, 1}),
          "The sine of 0 is 0, its cosine 1. Which columns hold sines?", [] { return my_sinusoids(3, 4).rows(0, 1); });
  g.equal("position 1 with two columns", Tensor::of<double>({1, 2}, {std::sin(1.0), std::cos(1.0)}),
          "The sine and the cosine of a pair have one angle.", [] { return my_sinusoids(2, 2).rows(1, 2); });
  g.equal("position 1 with four columns",
          Tensor::of<double>({1, 4}, {std::sin(1.0), std::cos(1.0), std::sin(0.01), std::cos(0.01)}),
          "Columns 0 and 1 share a frequency, and so do columns 2 and 3. What is 10000^(2i / d_model) for i = 1?",
          [] { return my_sinusoids(3, 4).rows(1, 2); });
  g.equal("50 positions with 16 columns", nn::sinusoidal_table(50, 16),
          "Is the angle the position times the frequency of its pair of columns?", [] { return my_sinusoids(50, 16); });
}

#elif EXERCISE == 6  // rotary positions

void grade(Grader& g) {
  Rng rng(6);
  const Tensor q = randn({5, 8}, rng, f64), k = randn({5, 8}, rng, f64);
  g.equal("position 0 is not turned", q.rows(0, 1), "The angle at position 0 is 0: its cosine is 1, its sine 0.",
          [&] { return my_rotary(q.rows(0, 1), 0); });
  g.equal("row 3 alone, with first = 3, equals row 3 of the whole", zeros({1, 8}, f64),
          "A row that comes alone, as from a cache, has the position first + 0.",
          [&] { return my_rotary(q.rows(3, 4), 3) - my_rotary(q, 0).rows(3, 4); });
  g.check("lengths stay", "A rotation keeps a^2 + b^2. Does the second line still have the a of the input?",
          [&] { return std::fabs(sum_of_squares(my_rotary(q, 7)) - sum_of_squares(q)) < 1e-12; });
  g.equal("(1, 0) at position 1", Tensor::of<double>({1, 2}, {std::cos(1.0), std::sin(1.0)}), "Which way do you turn?",
          [] {
            return my_rotary(Tensor::of<double>({1, 2}, {1, 0}), 1);
          });
  g.equal("(1, 0, 1, 0) at position 1",
          Tensor::of<double>({1, 4}, {std::cos(1.0), std::sin(1.0), std::cos(0.01), std::sin(0.01)}),
          "The second pair turns more slowly than the first one. By which power of 10000?", [] {
            return my_rotary(Tensor::of<double>({1, 4}, {1, 0, 1, 0}), 1);
          });
  g.check("scores stay when all positions move on by 100",
          "Queries and keys turn the same way, by their own positions: what is left is the difference.", [&] {
            const Tensor here = matmul(my_rotary(q, 0), my_rotary(k, 0), Trans::b);
            const Tensor there = matmul(my_rotary(q, 100), my_rotary(k, 100), Trans::b);
            return sum_of_squares(here - there) < 1e-20;
          });
  g.check("x stays as it is", "Copies of a Tensor share its memory. Write to a tensor of its own.", [&] {
    const Tensor before = q.clone();
    my_rotary(q, 2);
    return same_bits(before, q);
  });
}

#endif
