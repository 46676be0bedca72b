// Chapter 2. Grades exercise 2.6.

using orrery::i64;
using orrery::Tensor;

Tensor as_tensor(const std::vector<double>& numbers) {
  return Tensor::of<double>({static_cast<i64>(numbers.size())}, numbers);
}

void grade_slopes(Grader& g) {
  g.equal(
      "a b + c: value, and the gradients of all five numbers",
      [] {
        MyTape tape;
        const size_t a = tape.input(2), b = tape.input(3), c = tape.input(4), y = tape.add(tape.mul(a, b), c);
        std::vector<double> answer = tape.gradients(y);
        answer.push_back(tape.value(y));
        return as_tensor(answer);
      },
      Tensor::of<double>({6}, {3, 2, 1, 1, 1, 10}),
      "A line passes to each input its gradient times a slope. Which slopes has a product?");
  g.equal(
      "t t + t at t = 3",
      [] {
        MyTape tape;
        const size_t t = tape.input(3), y = tape.add(tape.mul(t, t), t);
        return as_tensor(tape.gradients(y));
      },
      Tensor::of<double>({3}, {7, 1, 1}),
      "t is used three times. What becomes of the first part when the second comes?");
  g.equal(
      "a neuron, tanh(w x + d)",
      [] {
        MyTape tape;
        const size_t w = tape.input(std::log(2.0)), x = tape.input(2), d = tape.input(-std::log(2.0));
        return as_tensor(tape.gradients(tape.tanh(tape.add(tape.mul(w, x), d))));
      },
      Tensor::of<double>({6}, {1.28, 0.64 * std::log(2.0), 0.64, 0.64, 0.64, 1}),
      "The slope of tanh is written with one number that you have just computed. Which?");
}

void grade_the_walk(Grader& g) {
  g.equal(
      "a number that is not the last, and then the last again",
      [] {
        MyTape tape;
        const size_t x = tape.input(1), u = tape.add(x, x), v = tape.mul(u, u);
        std::vector<double> answer = tape.gradients(v);
        for (const size_t y : {u, v})
          for (const double gradient : tape.gradients(y)) answer.push_back(gradient);
        return as_tensor(answer);
      },
      Tensor::of<double>({9}, {8, 4, 1, 2, 1, 0, 8, 4, 1}),
      "The walk begins at y. What came later has no part in it, and no walk may see what another left behind.");
  g.equal(
      "u + v, where u = a + a and v = 3 u",
      [] {
        MyTape tape;
        const size_t a = tape.input(1), u = tape.add(a, a), v = tape.mul(tape.input(3), u);
        return as_tensor(tape.gradients(tape.add(u, v)));
      },
      Tensor::of<double>({5}, {8, 4, 2, 1, 1}), "u may pass its gradient on only after v has added its part.");
  g.equal(
      "a sum of 200,000 numbers, one after another",
      [] {
        MyTape tape;
        const size_t x = tape.input(1);
        size_t y = x;
        for (int i = 0; i < 200000; ++i) y = tape.add(y, x);
        return tape.gradients(y)[x];
      },
      200001, "How deep does a call go that calls itself for each input?");
}

void grade(Grader& g) {
  grade_slopes(g);
  grade_the_walk(g);
}
