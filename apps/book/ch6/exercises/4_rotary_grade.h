// Chapter 6. Grades exercise 6.4.

void grade(Grader& g) {
  Rng rng(6);
  const Tensor q = randn({5, 8}, rng, f64), k = randn({5, 8}, rng, f64);
  g.equal(
      "position 0 is not turned", [&] { return my_rotary(q.rows(0, 1), 0); }, q.rows(0, 1),
      "The angle at position 0 is 0: its cosine is 1, its sine 0.");
  g.equal(
      "(1, 0, 1, 0) at position 1",
      [] {
        return my_rotary(Tensor::of<double>({1, 4}, {1, 0, 1, 0}), 1);
      },
      Tensor::of<double>({1, 4}, {std::cos(1.0), std::sin(1.0), std::cos(0.01), std::sin(0.01)}),
      "(1, 0) turned by an angle is (cos, sin). The second pair turns by 1/100 of the first one's angle.");
  g.check(
      "lengths stay", [&] { return std::fabs(sum_of_squares(my_rotary(q, 7)) - sum_of_squares(q)) < 1e-12; },
      "A rotation keeps a^2 + b^2. Does the second line still have the a of the input?");
  g.equal(
      "row 3 alone, with first = 3, equals row 3 of the whole",
      [&] { return my_rotary(q.rows(3, 4), 3) - my_rotary(q, 0).rows(3, 4); }, zeros({1, 8}, f64),
      "A row that comes alone, as from a cache, has the position first + 0.");
  g.check(
      "scores stay when all positions move on by 100",
      [&] {
        const Tensor here = matmul(my_rotary(q, 0), my_rotary(k, 0), Trans::b);
        const Tensor there = matmul(my_rotary(q, 100), my_rotary(k, 100), Trans::b);
        return sum_of_squares(here - there) < 1e-20;
      },
      "Queries and keys turn the same way, by their own positions: what is left is the difference.");
  g.check(
      "x stays as it is",
      [&] {
        const Tensor before = q.clone();
        my_rotary(q, 2);
        return same_bits(before, q);
      },
      "Copies of a Tensor share its memory. Write to a tensor of its own.");
}
