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

// Where every key is seen.
Tensor attend(const Tensor& Q, const Tensor& K, const Tensor& V) {
  return my_attention(constant(Q), constant(K), constant(V), full({Q.size(0), K.size(0)}, 1, Dtype::i32)).value();
}

Tensor identity(i64 n) {
  Tensor result = zeros({n, n}, f64);
  for (i64 i = 0; i < n; ++i) result(i, i) = 1;
  return result;
}

void grade(Grader& g) {
  const Tensor Q = Tensor::of<double>({3, 2}, {1, 0, 0, 2, 1, 1}), V = Tensor::of<double>({3, 2}, {2, 0, 0, 1, 1, 1});
  const double e = std::exp(1 / std::sqrt(2.0)), total = 2 * e + 1;  // scores 1, 0, 1 before they are divided
  g.equal("where all values are equal, the result is that value", full({2, 3}, 1, f64),
          "The weights of one query add up to 1. Which axis does softmax run over?", [] {
            Rng rng(6);
            const Tensor q = randn({2, 4}, rng, f64), k = randn({5, 4}, rng, f64);
            return attend(q, k, full({5, 3}, 1, f64));
          });
  g.equal("the same queries and keys with longer values", zeros({3, 2}, f64),
          "How long the values are does not change the weights. Which size is d_k?", [&] {
            return slice(attend(Q, Q, concat({V, V, V}, 1)), 1, 0, 2) - attend(Q, Q, V);
          });
  g.check(
      "with 256 columns no key gets nearly all of the weight",
      "The dot product of two long vectors is large, so that softmax is nearly one-hot. What does the paper do about "
      "it?",
      [] {
        Rng rng(6);
        const Tensor q = randn({8, 256}, rng, f64), k = randn({16, 256}, rng, f64);
        return max(attend(q, k, identity(16))).item() < 0.9;  // where V is the identity, the result is the weights
      });
  g.equal("the first of three queries", Tensor::of<double>({1, 2}, {3 * e / total, (1 + e) / total}),
          "These are the numbers of head 0 in the chapter. The scores are divided, but by which number?",
          [&] { return attend(Q, Q, V).rows(0, 1); });
  const double log2 = std::log(2.0), log3 = std::log(3.0);
  const Tensor queries = Tensor::of<double>({2, 4}, {2, 0, 0, 0, 0, 2, 0, 0});
  const Tensor keys =
      Tensor::of<double>({5, 4}, {log3, 0, 0, 0, log2, 0, 0, 0, 0, 0, 0, 0, 0, 2 * log2, 0, 0, 0, 0, 0, 0});
  const Tensor values = Tensor::of<double>({5, 3}, {8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 8, 8, 0, 0});
  g.equal("two queries, five keys, d_k = 4, d_v = 3", Tensor::of<double>({2, 3}, {4, 2, 2, 2, 1, 5}),
          "The dot products are 2 log 3, 2 log 2, 0, 0, 0 and 0, 0, 0, 4 log 2, 0.",
          [&] { return attend(queries, keys, values); });
  const Tensor allowed = Tensor::of<i32>({3, 4}, {1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0});
  const Variable alike = constant(full({3, 2}, 1, f64)), four = constant(full({4, 2}, 1, f64));
  const auto weights = [=] { return my_attention(alike, four, constant(identity(4)), allowed).value(); };
  g.equal("four keys with equal scores: one query sees three of them, one sees two",
          Tensor::of<double>({2, 4}, {1 / 3., 1 / 3., 0, 1 / 3., 0, 0.5, 0, 0.5}),
          "Do the weights of the keys that a query sees add up to 1? What did softmax divide by?",
          [=] { return weights().rows(0, 2); });
  g.equal("a query that sees no key gets 0", zeros({1, 4}, f64),
          "Where every score has -1e9 added, softmax sees no difference between the keys. Which weights does it give?",
          [=] { return weights().rows(2, 3); });
  g.gradients("the gradients of Q, K and V",
              "Stay with Variables from beginning to end: a Tensor taken out of one has no gradient.", [=] {
                Rng rng(6);
                const auto random = [&](i64 rows, i64 columns) { return randn({rows, columns}, rng, f64); };
                const std::vector<Tensor> inputs{random(3, 4), random(4, 4), random(4, 3)};
                return checkable([=](const Variable& q, const Variable& k,
                                     const Variable& v) { return my_attention(q, k, v, allowed); },
                                 inputs);
              });
}

#elif EXERCISE == 3  // several heads

// Composed of the library's operations; each query sees a key.
Variable one_head(const Variable& Q, const Variable& K, const Variable& V, const Tensor& allowed) {
  const double factor = 1 / std::sqrt(static_cast<double>(Q.size(1)));
  return matmul(softmax(matmul(Q, K, Trans::b) * factor + (allowed.to(f64) - 1.0) * 1e9), V);
}

void grade(Grader& g) {
  const auto matrix = [](const std::vector<double>& numbers) { return Tensor::of<double>({4, 4}, numbers); };
  const auto products = [](const std::vector<Variable>& W) {
    const auto with = [](const Variable& M) { return [=](const Variable& in) { return matmul(in, M); }; };
    return Projections{with(W.at(0)), with(W.at(1)), with(W.at(2)), with(W.at(3))};
  };
  const auto weights = [=](const Tensor& Q, const Tensor& K, const Tensor& V, const Tensor& O) {
    return products({constant(Q), constant(K), constant(V), constant(O)});
  };
  const Tensor same = matrix({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  const Tensor x = Tensor::of<double>({3, 4}, {1, 0, 2, 0, 0, 2, 0, 1, 1, 1, 1, 1});
  const Tensor memory = concat({x * 2.0, x.rows(0, 2)}, 0), random = [] {
    Rng rng(6);
    return randn({4, 4}, rng, f64);
  }();
  const Tensor mask = Tensor::of<i32>({3, 5}, {1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1});
  // What each of two heads is given, side by side, if the matrices change nothing.
  struct Given {
    std::vector<Tensor> Q, K, V, allowed;
  };
  const auto given = [=] {
    Given result;
    my_multi_head(constant(x), constant(memory), weights(same, same, same, same), 2, mask,
                  [&](const Variable& Q, const Variable& K, const Variable& V, const Tensor& allowed) {
                    result.Q.push_back(Q.value());
                    result.K.push_back(K.value());
                    result.V.push_back(V.value());
                    result.allowed.push_back(allowed);
                    return Q;
                  });
    return result;
  };
  // With heads that give back their queries.
  const auto of_queries = [=](const Tensor& O) {
    return my_multi_head(constant(x), constant(memory), weights(random, same, same, O), 2, mask,
                         [](const Variable& Q, const Variable&, const Variable&, const Tensor&) { return Q * 2.0; })
        .value();
  };
  g.check("two heads have different queries", "Which columns belong to head 1? Does every head get columns of its own?",
          [=] {
            const Given all = given();
            return all.Q.size() == 2 && !same_bits(all.Q[0], all.Q[1]);
          });
  g.equal("the queries of both heads, side by side", x,
          "A head has some columns of every row. In which order does a reshape go through the numbers?",
          [=] { return concat(given().Q, 1); });
  g.equal("the keys of both heads, side by side", memory, "Which of the two is asked, and which one is found?",
          [=] { return concat(given().K, 1); });
  g.equal("the values of both heads, side by side", memory,
          "Who hands over: the one that asks, or the one that is found?", [=] { return concat(given().V, 1); });
  g.equal("the masks of both heads, side by side", concat({mask, mask}, 1),
          "A mask is about tokens. Does it hold for some heads only?", [=] { return concat(given().allowed, 1); });
  g.equal("heads that give back twice their queries, joined", matmul(x, random) * 2.0,
          "After joining, a token has d_model numbers again, those of head 0 first. Which axis becomes longer?",
          [=] { return of_queries(same); });
  g.equal("the same, mixed", matmul(matmul(x, random) * 2.0, random), "What mixes the outputs of the heads?",
          [=] { return of_queries(random); });
  const double one = std::exp(1 / std::sqrt(2.0)), two = one * one, a = one / (one + 2 * two),
               b = two / (one + 2 * two);
  g.equal("the last token of the chapter's example", Tensor::of<double>({1, 4}, {3 * a + 2 * b, 5 * b, a, -b}),
          "The chapter shows every number of both heads. Which matrix makes the values?", [=] {
            const Tensor K = matrix({1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
            const Tensor V = matrix({0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0});
            const Tensor O = matrix({1, 0, 1, 0, 0, 1, 0, 1, 1, 0, -1, 0, 0, 1, 0, -1});
            const Variable tokens = constant(x);
            const Tensor all = full({3, 3}, 1, Dtype::i32);
            return my_multi_head(tokens, tokens, weights(same, K, V, O), 2, all, one_head).value().rows(2, 3);
          });
  Rng rng(6);
  const i64 d = 8;
  nn::MultiHeadAttention layer(d, 4, rng);
  nn::to(layer, f64);
  const Tensor queries = randn({3, d}, rng, f64), others = randn({5, d}, rng, f64);
  nn::Pass pass = nn::Pass::inference();
  const auto batch = [](const Tensor& rows) { return constant(rows.reshape({1, rows.size(0), rows.size(1)})); };
  g.equal("four heads, as the library computes them",
          layer.cross_attention(batch(queries), batch(others), Mask::allow(mask), pass).value().reshape({3, d}),
          "How many columns has a head, if four share eight?", [&] {
            const auto part = [&](i64 i) {
              return permute(layer.in_proj.weight.value().rows(i * d, (i + 1) * d), {1, 0});
            };
            const Projections W = weights(part(0), part(1), part(2), permute(layer.out_proj.weight.value(), {1, 0}));
            return my_multi_head(constant(queries), constant(others), W, 4, mask, one_head).value();
          });
  g.gradients("the gradients of x, the memory and all matrices", "Cut and join Variables: a Tensor has no gradient.",
              [=] {
                const auto f = [=](const std::vector<Variable>& in) {
                  return my_multi_head(in[0], in[1], products({in[2], in[3], in[4], in[5]}), 2, mask, one_head);
                };
                return checkable(f, std::vector<Tensor>{x, memory, random, random, random, random});
              });
}

#elif EXERCISE == 4  // the backward of attention

void grade(Grader& g) {
  constexpr i64 n = 2, m = 3, d_k = 4, d_v = 5;
  constexpr double cap = 1.5;
  Rng rng(6);
  const Tensor Q = randn({n, d_k}, rng, f64), K = randn({m, d_k}, rng, f64), V = randn({m, d_v}, rng, f64);
  const Tensor dO = randn({n, d_v}, rng, f64);
  // The gradient of input `which` by the student's backward, or by the tape of the operations it is made of.
  const auto gradient = [=](size_t which, bool by_student) {
    const std::vector<Variable> x{parameter(Q.clone()), parameter(K.clone()), parameter(V.clone())};
    const Variable scores = tanh(matmul(x[0], x[1], Trans::b) / (cap * std::sqrt(static_cast<double>(d_k)))) * cap;
    backward(by_student ? my_attention(x[0], x[1], x[2], cap) : matmul(softmax(scores), x[2]), dO);
    return x[which].gradient();
  };
  g.check("backward of 2 queries and 3 keys has no error",
          "Write the shapes of dS, Q and K beside each other. Which products fit, and which only after a transpose? "
          "And does the sum of a row keep its axis?",
          [=] { return gradient(0, true).defined(); });
  g.equal("dV", gradient(2, false), "O = P V: what is dV for this product?", [=] { return gradient(2, true); });
  g.check("where all keys are equal to 1, dQ is 0: each row of dS adds up to 0",
          "The weights of a row always add up to 1. What does softmax subtract from dP?", [=] {
            const Variable q = parameter(Q.clone());
            backward(my_attention(q, constant(full({m, d_k}, 1, f64)), constant(V), cap), dO);
            return sum_of_squares(q.gradient()) < 1e-24;
          });
  g.equal(
      "dQ where the cap is far away",
      [=] {
        const Variable q = parameter(Q.clone());
        const Variable scores = matmul(q, constant(K), Trans::b) * (1 / std::sqrt(static_cast<double>(d_k)));
        backward(matmul(softmax(scores), constant(V)), dO);
        return q.gradient();
      }(),
      "Far below a cap of 1e6, S is Q K^T / sqrt(d_k), and tanh changes nothing. Does the slope of tanh A depend on "
      "A = S / c, or on S?",
      [=] {
        const Variable q = parameter(Q.clone());
        backward(my_attention(q, constant(K), constant(V), 1e6), dO);
        return q.gradient();
      });
  g.equal("dQ", gradient(0, false), "From dO to dP, from dP to dS by softmax. What stands between S and Q K^T?",
          [=] { return gradient(0, true); });
  g.equal("dK", gradient(1, false), "From dS to dK: k_j is used in the scores of every query.",
          [=] { return gradient(1, true); });
  g.prove("the whole proof", "Only what is Saved may be read in backward, and nothing may be written to it.",
          sample_of("my_attention",
                    [](const Variable& q, const Variable& k, const Variable& v) { return my_attention(q, k, v, cap); },
                    {{2, 4}, {3, 4}, {3, 5}}));
}

#elif EXERCISE == 5  // the sinusoidal encodings

void grade(Grader& g) {
  g.equal("position 0", Tensor::of<double>({1, 4}, {0, 1, 0, 1}),
          "The sine of 0 is 0, its cosine 1. Which columns hold sines?", [] { return my_sinusoids(3, 4).rows(0, 1); });
  g.equal("position 1 with two columns", Tensor::of<double>({1, 2}, {std::sin(1.0), std::cos(1.0)}),
          "The sine and the cosine of a pair have one angle.", [] { return my_sinusoids(2, 2).rows(1, 2); });
  g.equal("position 1 with four columns",
          Tensor::of<double>({1, 4}, {std::sin(1.0), std::cos(1.0), std::sin(0.01), std::cos(0.01)}),
          "Columns 0, 1 share a frequency, as do 2, 3. What is 10000^(2i / d_model) for i = 1? In C++, 2 / 4 is 0.",
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
