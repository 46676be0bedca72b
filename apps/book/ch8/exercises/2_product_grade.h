// Chapter 8. Grades exercise 8.2.

void grade(Grader& g) {
  const auto run = [](i64 m, i64 n, i64 k, i64& reads) {
    Rng rng(8);
    const Matrix a{randint(-9, 10, {m, k}, rng).to(f64)}, b{randint(-9, 10, {k, n}, rng).to(f64)};
    Matrix c{full({m, n}, -1e6, f64)};
    my_product(a, b, c, m, n, k);
    reads = a.reads + b.reads;
    return c.x;
  };
  const auto expected = [](i64 m, i64 n, i64 k) {
    Rng rng(8);
    const Tensor a = randint(-9, 10, {m, k}, rng).to(f64), b = randint(-9, 10, {k, n}, rng).to(f64);
    return matmul(a, b);
  };
  i64 reads = 0;
  g.equal(
      "24 x 24, k = 24", [&] { return run(24, 24, 24, reads); }, expected(24, 24, 24),
      "Do the sums of a block begin at 0, and does each block write only its own part of c?");
  g.at_most(
      "at most one read for two multiply-adds",
      [&] {
        run(24, 24, 24, reads);
        return static_cast<double>(reads);
      },
      24 * 24 * 24 / 2.0, "A number that is read should be multiplied with all it meets in the block, then forgotten.");
  g.equal(
      "5 x 7, k = 3", [&] { return run(5, 7, 3, reads); }, expected(5, 7, 3),
      "The last block of a row or a column may be smaller than the others.");
  g.equal(
      "1 x 9, k = 2", [&] { return run(1, 9, 2, reads); }, expected(1, 9, 2), "A matrix may be smaller than a block.");
}
