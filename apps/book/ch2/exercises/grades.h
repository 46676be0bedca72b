// Chapter 2. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // products and quotients

void grade(Grader& g) {
  // f(a, b) at (a, b), differentiated in a (which = 0) or in b.
  const auto slope = [](Number (*f)(Number, Number), double a, double b, int which) {
    Tape tape;
    const Number inputs[] = {record(tape, a), record(tape, b)};
    run_backward(f(inputs[0], inputs[1]));
    return inputs[which].gradient();
  };
  const auto product = [](Number a, Number b) { return a * b + a; };
  const auto square = [](Number a, Number) { return a * a; };
  const auto quotient = [](Number a, Number b) { return a / b; };
  const auto mixed = [](Number a, Number b) { return (a + b) / (a * b); };
  g.equal("y = a b + a: dy/da at a = 5, b = 2", 3, "By how much does a b grow when a grows by 1 and b stays?",
          [&] { return slope(product, 5, 2, 0); });
  g.equal("y = a b + a: dy/db at a = 5, b = 2", 5, "By how much does a b grow when b grows by 1 and a stays?",
          [&] { return slope(product, 5, 2, 1); });
  g.equal("y = a a: dy/da at a = 3", 6,
          "Both inputs are the same a. Each use has its own slope, and the walk adds both.",
          [&] { return slope(square, 3, 0, 0); });
  const std::string of_quotient = "Write a / b as a times 1/b. What is the derivative of 1/b, and its sign?";
  g.equal("y = a / b: dy/da at a = 3, b = 2", 0.5, of_quotient, [&] { return slope(quotient, 3, 2, 0); });
  g.equal("y = a / b: dy/db at a = 3, b = 2", -0.75, of_quotient, [&] { return slope(quotient, 3, 2, 1); });
  g.equal("y = (a + b) / (a b): dy/da at a = 2, b = 3", -0.25,
          "This y is 1/a + 1/b. One of the two operations has a wrong slope.", [&] { return slope(mixed, 2, 3, 0); });
}

#elif EXERCISE == 2  // the walk back

void grade(Grader& g) {
  const auto gradient = [](Number of, Number in) {
    run_backward(of);
    return in.gradient();
  };
  // Each question has a tape of its own, but for the last one.
  Tape tape, other;
  const auto slope = [&](Tape& on, size_t input) {
    const Number a = record(on, 2), b = record(on, 3), c = record(on, 4);
    return gradient(a * b + c, input == 0 ? a : c);
  };
  g.equal("y = a b + c: dy/da at a = 2, b = 3, c = 4", 3,
          "A line passes on its gradient times the slope. Has it got its whole gradient when it does?",
          [&] { return slope(tape, 0); });
  g.equal("y = a b + c: dy/dc", 1, "The walk begins at y, with dy/dy = 1.", [&] { return slope(other, 2); });
  Tape twice;
  const Number t = record(twice, 3), uses = t * t + t;
  g.equal("y = t t + t: dy/dt at t = 3", 7,
          "t is used three times. What becomes of the part of the first use when the second comes?",
          [&] { return gradient(uses, t); });
  Tape two, three;
  const Number x = record(two, 1), u = x + x, v = u + u + u, sum = u + v;
  const Number p = record(three, 1), q = p + p, later = q + q;
  g.equal("y = u + v, u = 2 x, v = 3 u: dy/dx", 8, "u may pass its gradient on only after v has added its part.",
          [&] { return gradient(sum, x); });
  g.equal("dq/dr, where q = 2 p, and r = q + q came later", 0, "Lines after y have no part in it.",
          [&] { return gradient(q, later); });
  g.equal("the same tape again: du/dx", 2, "What is in the gradients when a second walk begins?",
          [&] { return gradient(u, x); });
}

#elif EXERCISE == 3  // an order of your own

void grade(Grader& g) {
  // What is wrong with an order; "" if nothing is.
  const auto wrong = [](const Graph& inputs, const std::vector<size_t>& order, size_t nodes) -> std::string {
    for (size_t i = 0; i < order.size(); ++i)
      if (order[i] >= inputs.size()) return "the order has a node that is not there";
    if (std::set<size_t>(order.begin(), order.end()).size() < order.size()) return "the order has a node twice";
    if (order.size() < nodes) return "the order lacks a node that y leads back to";
    if (order.size() > nodes) return "the order has a node that y does not lead back to";
    for (size_t later = 0; later < order.size(); ++later)
      for (const size_t input : inputs[order[later]])
        if (std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(later), input) !=
            order.begin() + static_cast<std::ptrdiff_t>(later))
          return "the order has a node before one that was computed from it";
    return "";
  };
  const auto ask = [&](const std::string& question, const Graph& inputs, size_t y, size_t nodes,
                       const std::string& hint) {
    const auto right = [&] {
      const std::string problem = wrong(inputs, visiting_order(inputs, y), nodes);
      if (!problem.empty()) throw std::runtime_error(problem);
      return true;
    };
    g.check(question, hint, right);
  };
  ask("a chain: 2 from 1 from 0", {{}, {0}, {1}}, 2, 3,
      "Follow the inputs to their end. Which comes first: a node, or what it was computed from?");
  ask("a product of a number with itself: y = 1, a = 0", {{}, {0, 0}}, 1, 2,
      "How often may a node be visited, however often it is met?");
  ask("a node that y does not lead to", {{2}, {2}, {}}, 0, 2, "Begin at y, and follow inputs only.");
  ask("y = u + v, v from u, u from a: y = 3, u = 1, v = 2, a = 0", {{}, {0}, {1}, {1, 2}}, 3, 4,
      "u is an input of y and of v. When is its gradient complete?");
  ask("the same graph of four with other numbers: y = 0, u = 1, v = 2, a = 3", {{1, 2}, {3}, {1}, {}}, 0, 4,
      "The numbers of nodes are names here, and no ages.");
  ask("two chains that meet", {{1, 4}, {2}, {3}, {5}, {3}, {}}, 0, 6,
      "Write each node down after all that it was computed from. Then read your list backwards.");
}

#elif EXERCISE == 4  // an operation with two outputs

void grade(Grader& g) {
  const double quarter = std::acos(-1.0) / 4;  // sin and cos are both sqrt(1/2) there
  const auto dx = [quarter](double of_sine, double of_cosine) {
    const Variable x = parameter(Tensor::of<double>({1}, {quarter}));
    const auto [s, c] = my_sin_cos(x);
    backward(concat({s, c}, 0), Tensor::of<double>({2}, {of_sine, of_cosine}) * std::sqrt(2.0));
    return x.gradient();
  };
  g.equal("sin x alone counts", Tensor::of<double>({1}, {1}), "What is the slope of the sine?",
          [&] { return dx(1, 0); });
  g.equal("the size of the slope where cos x alone counts", 1,
          "Both outputs came from x. What does the second one add to its gradient?",
          [&] { return std::fabs(dx(0, 1).item()); });
  g.equal("cos x alone counts", Tensor::of<double>({1}, {-1}), "Does the cosine rise or fall there?",
          [&] { return dx(0, 1); });
  g.equal("sin x + cos x at its highest point", Tensor::of<double>({1}, {0}),
          "Both outputs came from x, and each adds its part.", [&] { return dx(1, 1); });
  g.prove("the whole proof, both outputs used", "dL/dx = dL/ds ds/dx + dL/dc dc/dx.", [] {
    const auto both = [](const Variable& x) {
      const auto [s, c] = my_sin_cos(x);
      return concat({s, c}, 0);
    };
    return sample_of("my_sin_cos", both, {{3, 4}});
  });
  for (const size_t output : {0, 1})
    g.prove(std::string("the whole proof, only the ") + (output == 0 ? "sine" : "cosine") + " used",
            "An output that leads nowhere has no gradient. What is its dy then?",
            sample_of("my_sin_cos", [output](const Variable& x) { return my_sin_cos(x)[output]; }, {{3, 4}}));
}

#elif EXERCISE == 5  // who writes and who adds

void grade(Grader& g) {
  const auto gradient = [](Variable (*f)(const Variable&)) {
    const Variable x = parameter(Tensor::of<double>({3}, {-1, 2, 5}));
    backward(sum(f(x)));
    return x.gradient();
  };
  g.equal("y = x^2 at -1, 2, 5", Tensor::of<double>({3}, {-2, 4, 10}),
          "Nobody has written to this gradient yet. What is in a buffer that is new?",
          [&] { return gradient(my_square); });
  const auto used_twice = [](const Variable& x) { return my_square(x) + my_square(x); };
  g.equal("y = x^2 + x^2 at 5", 20, "The first of the two to come writes. What must the second do?",
          [&] { return gradient(used_twice).at(2); });
  const auto used_after = [](const Variable& x) { return my_square(x) + x; };
  g.equal(
      "y = x^2 + x at -1, 2, 5", Tensor::of<double>({3}, {-1, 5, 11}),
      "`add` is newer than the square, so backward comes to it first, and gives x a 1. What have you done to this 1?",
      [&] { return gradient(used_after); });
  g.prove("the whole proof", "Both cases of is_new must leave the whole sum in the buffer.",
          sample_of("my_square", my_square, {{3, 4}}));
}

#elif EXERCISE == 6  // a tape of your own

using orrery::i64;
using orrery::Tensor;

Tensor as_tensor(const std::vector<double>& numbers) {
  return Tensor::of<double>({static_cast<i64>(numbers.size())}, numbers);
}

void grade_slopes(Grader& g) {
  g.equal("a b + c: value, and the gradients of all five numbers", Tensor::of<double>({6}, {3, 2, 1, 1, 1, 10}),
          "A line passes to each input its gradient times a slope. Which slopes has a product?", [] {
            MyTape tape;
            const size_t a = tape.input(2), b = tape.input(3), c = tape.input(4), y = tape.add(tape.mul(a, b), c);
            std::vector<double> answer = tape.gradients(y);
            answer.push_back(tape.value(y));
            return as_tensor(answer);
          });
  g.equal("t t + t at t = 3", Tensor::of<double>({3}, {7, 1, 1}),
          "t is used three times. What becomes of the first part when the second comes?", [] {
            MyTape tape;
            const size_t t = tape.input(3), y = tape.add(tape.mul(t, t), t);
            return as_tensor(tape.gradients(y));
          });
  g.equal("a neuron, tanh(w x + d)", Tensor::of<double>({6}, {1.28, 0.64 * std::log(2.0), 0.64, 0.64, 0.64, 1}),
          "The slope of tanh is written with one number that you have just computed. Which?", [] {
            MyTape tape;
            const size_t w = tape.input(std::log(2.0)), x = tape.input(2), d = tape.input(-std::log(2.0));
            return as_tensor(tape.gradients(tape.tanh(tape.add(tape.mul(w, x), d))));
          });
}

void grade_the_walk(Grader& g) {
  g.equal("a number that is not the last", Tensor::of<double>({3}, {2, 1, 0}),
          "Where does the walk begin? What came later has no part in it.", [] {
            MyTape tape;
            const size_t x = tape.input(1), u = tape.add(x, x);
            tape.mul(u, u);
            return as_tensor(tape.gradients(u));
          });
  g.equal("the last number twice", Tensor::of<double>({3}, {8, 4, 1}), "No walk may see what another left behind.", [] {
    MyTape tape;
    const size_t x = tape.input(1), u = tape.add(x, x), v = tape.mul(u, u);
    tape.gradients(v);
    return as_tensor(tape.gradients(v));
  });
  g.equal("u + v, where u = a + a and v = 3 u", Tensor::of<double>({5}, {8, 4, 2, 1, 1}),
          "u may pass its gradient on only after v has added its part.", [] {
            MyTape tape;
            const size_t a = tape.input(1), u = tape.add(a, a), v = tape.mul(tape.input(3), u);
            return as_tensor(tape.gradients(tape.add(u, v)));
          });
  g.equal("a sum of 200,000 numbers, one after another", 200001,
          "How deep does a call go that calls itself for each input?", [] {
            MyTape tape;
            const size_t x = tape.input(1);
            size_t y = x;
            for (int i = 0; i < 200000; ++i) y = tape.add(y, x);
            return tape.gradients(y)[x];
          });
}

void grade(Grader& g) {
  grade_slopes(g);
  grade_the_walk(g);
}

#endif
