// Chapter 7. Grades exercise 7.5.

void grade(Grader& g) {
  constexpr i64 T = 6, d_k = 4, d_v = 3;
  Rng rng(7);
  const Tensor Q = randn({T, d_k}, rng, f64), K = randn({T, d_k}, rng, f64), V = randn({T, d_v}, rng, f64);
  const auto four_axes = [](const Tensor& x) { return constant(x.reshape({1, 1, x.size(0), x.size(1)})); };
  const Tensor whole =
      attention(four_axes(Q), four_axes(K), four_axes(V), Mask::causal()).output.value().reshape({T, d_v});
  const auto after = [=](MyCache& cache, i64 count) {  // the last answer of `count` calls
    Tensor y;
    for (i64 t = 0; t < count; ++t) y = cache.extend(Q.rows(t, t + 1), K.rows(t, t + 1), V.rows(t, t + 1));
    return y;
  };
  const auto answer = [=](i64 count) {
    MyCache cache;
    return after(cache, count);
  };
  g.equal(
      "the first token", [=] { return answer(1); }, whole.rows(0, 1),
      "The first position sees itself alone: its weight is 1.");
  g.equal(
      "the second token", [=] { return answer(2); }, whole.rows(1, 2),
      "The second position sees the first one and itself.");
  g.equal(
      "the sixth token", [=] { return answer(6); }, whole.rows(5, 6),
      "Row i of K and row i of V belong to the same position.");
  g.equal(
      "after six tokens, K",
      [=] {
        MyCache cache;
        after(cache, T);
        return cache.K;
      },
      K, "Keys of all positions, in their order.");
  g.equal(
      "after six tokens, V",
      [=] {
        MyCache cache;
        after(cache, T);
        return cache.V;
      },
      V, "Values of all positions, in the order of the keys.");
}
