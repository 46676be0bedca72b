// Chapter 5. Grades the programs with a mistake in a training step, or in a call of many: numbers 29 and later, as
// grades.h does those before.
#if EXERCISE == 29  // one step from several parts

// Where p, at first (0, 0), is after a step at rate 1.
Tensor stepped(const std::vector<Tensor>& parts, double max_norm) {
  Tensor p = zeros({2}, f64);
  my_step(p, parts, 1, max_norm);
  return p;
}

void grade(Grader& g) {
  const auto is = [&](const char* question, double x, double y, double max_norm, const char* hint) {
    const std::vector<Tensor> parts{Tensor::of<double>({2}, {3, 0}), Tensor::of<double>({2}, {0, 4})};
    g.equal(question, Tensor::of<double>({2}, {x, y}), hint, [=] { return stepped(parts, max_norm); });
  };
  is("two parts of norms 3 and 4, a bound of 10", -3, -4, 10, "What is short enough is not shortened.");
  is("two parts of norms 3 and 4, a bound of 1", -0.6, -0.8, 1, "Add up first. Whose norm may be max_norm at most?");
  g.equal("a part without a gradient", zeros({2}, f64), "0 is no longer than any bound.",
          [] { return stepped({zeros({2}, f64)}, 1); });
}

#elif EXERCISE == 30  // attention with two ways to hide keys

AttentionResult attended(const Mask& mask, bool causal, bool by_the_library) {
  Rng rng(30);
  const Variable Q = constant(randn({2, 1, 4, 3}, rng, f64)), K = constant(randn({2, 1, 4, 3}, rng, f64));
  if (!by_the_library) return my_attention(Q, K, Q, mask, causal);
  return attention(Q, K, Q, causal ? mask & Mask::causal() : mask);
}

void grade(Grader& g) {
  const Mask padded = Mask::padding(std::vector<i32>{4, 2});
  const auto is = [&](const char* question, const Mask& mask, bool causal, const char* hint) {
    g.equal(question, attended(mask, causal, true).weights.value(), hint,
            [=] { return attended(mask, causal, false).weights.value(); });
  };
  is("its weights with padding alone", padded, false, "Without the flag, `mask` says all.");
  is("its weights with the flag alone", Mask(), true, "Without a mask, the flag says all.");
  is("its weights with a window and the flag", Mask::window(1), true, "A key is hidden if one of the two hides it.");
  is("its weights with padding and the flag", padded, true, "Which of the two is forgotten, if both are given?");
}

#elif EXERCISE == 31  // gradient descent

// Where two numbers, at first 0, are after steps at rate 1 with the gradients 1 and 2.
Tensor after_steps(int steps) {
  std::vector<Variable> p{parameter(zeros({1}, f64)), parameter(zeros({1}, f64))};
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < 2; ++i) backward(p[i], full({1}, i == 0 ? 1.0 : 2.0, f64));
    my_step(p, 1);
  }
  return concat({p[0].value(), p[1].value()}, 0);
}

void grade(Grader& g) {
  g.equal("two numbers after the first step", Tensor::of<double>({2}, {-1, -2}),
          "A step ends rate times the gradient away. What else is changed?", [] { return after_steps(1); });
  g.equal("two numbers after three steps", Tensor::of<double>({2}, {-3, -6}),
          "What does the second backward find in each gradient?", [] { return after_steps(3); });
}

#elif EXERCISE == 32  // backward in half precision

void grade(Grader& g) {
  const auto is = [&](const char* question, double count, const char* hint) {
    g.equal(question, full({2}, 1.0, f64), hint, [=] {
      const MixedPrecision half_precision;
      return Tensor::of<double>({2}, {half_precision.gradient(1, count) * count,  //
                                      half_precision.gradient(-3, count) * count / -3});
    });
  };
  is("a mean of 8 terms: the gradients, divided by what they should be", 8,
     "It was right: what has been scaled twice?");
  is("the same of 2^26 terms", 0x1p26, "How large is 1 / count, and what does fp16 make of it? Who keeps it alive?");
}

#elif EXERCISE == 33  // attention with a cache

void grade(Grader& g) {
  constexpr i64 T = 4, d_k = 3, d_v = 2;
  Rng rng(33);
  const Tensor Q = randn({T, d_k}, rng, f64), K = randn({T, d_k}, rng, f64), V = randn({T, d_v}, rng, f64);
  const auto four_axes = [](const Tensor& x) { return constant(x.reshape({1, 1, x.size(0), x.size(1)})); };
  const Tensor whole =
      attention(four_axes(Q), four_axes(K), four_axes(V), Mask::causal()).output.value().reshape({T, d_v});
  const auto answer = [=](i64 t) {
    MyCache cache;
    for (i64 i = 0; i < t; ++i) cache.extend(Q.rows(i, i + 1), K.rows(i, i + 1), V.rows(i, i + 1));
    return cache.extend(Q.rows(t, t + 1), K.rows(t, t + 1), V.rows(t, t + 1));
  };
  g.equal("the first token", whole.rows(0, 1), "It sees itself alone.", [=] { return answer(0); });
  g.equal("the second token", whole.rows(1, 2), "How many keys does it see, and whose?", [=] { return answer(1); });
  g.equal("the last token", whole.rows(T - 1, T), "Whose key is missing?", [=] { return answer(T - 1); });
}

#endif
