// Chapter 6. Grades bug 12.

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
  g.no_leak(
      "attention with it",
      [] {
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
      },
      "Find the marks X in the leak matrix: how far from the diagonal are they?");
  g.equal(
      "the table of one position", [] { return table(1); }, full({1, 1}, 1.0, f64), "It sees itself.");
  g.equal(
      "the table of three positions", [] { return table(3); }, Tensor::of<double>({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}),
      "Write the table down, with queries as rows.");
}
