// Chapter 4. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // the matrix product's backward

// The gradient of input number `which` for a = [[1, 2], [3, 4]], b = [[1, 1], [0, 2]], dy = [[1, -2], [0, 1]].
Tensor gradient_of(size_t which) {
  const Variable a = parameter(Tensor::of<double>({2, 2}, {1, 2, 3, 4}));
  const Variable b = parameter(Tensor::of<double>({2, 2}, {1, 1, 0, 2}));
  backward(my_matmul(a, b), Tensor::of<double>({2, 2}, {1, -2, 0, 1}));
  return which == 0 ? a.gradient() : b.gradient();
}

void grade(Grader& g) {
  g.equal("da of two square matrices", Tensor::of<double>({2, 2}, {-1, -4, 1, 2}),
          "a_ik is used in y_i0, y_i1, ...; each time it is multiplied by an element of which row of b?",
          [] { return gradient_of(0); });
  g.equal("db of two square matrices", Tensor::of<double>({2, 2}, {1, 1, 2, 0}),
          "b_kj is used in y_0j, y_1j, ...; each time it is multiplied by an element of which column of a?",
          [] { return gradient_of(1); });
  g.prove("the whole proof, of matrices that are not square",
          "Write the shapes of dy, a and b beside each other: which products have the shape of a, and of b?",
          sample_of("my_matmul", my_matmul, {{3, 4}, {4, 2}}));
}

#elif EXERCISE == 2  // softmax's backward

void grade(Grader& g) {
  const Tensor x = Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)});
  const Tensor dy = Tensor::of<double>({1, 3}, {1, 0, 0});
  g.equal(
      "dx where only y_0 counts", Tensor::of<double>({1, 3}, {7.0 / 64, -2.0 / 64, -5.0 / 64}),
      "dL/dx_j collects a term from every output of its row, not only from y_j. What is dy_i/dx_j for i = j, and for "
      "i other than j?",
      [&] {
        const Variable in = parameter(x.clone());
        backward(my_softmax(in), dy);
        return in.gradient();
      });
  g.prove("the whole proof",
          "Every row has a sum of its own, over the last axis. Does the sum keep this axis, with size 1?",
          sample_of("my_softmax", my_softmax, {{3, 4}}));
}

#elif EXERCISE == 3  // log-softmax that keeps its digits, and its backward

void grade(Grader& g) {
  g.equal("y of (0, log 2, log 5)", Tensor::of<double>({1, 3}, {std::log(0.125), std::log(0.25), std::log(0.625)}),
          "The numbers e^y must add up to 1. Which one number, the same for the whole row, is taken from every x?", [] {
            return my_log_softmax(constant(Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)}))).value();
          });
  g.equal("y of (1000, -1000) and of (-1000, 1000)", Tensor::of<double>({2, 2}, {0, -2000, -2000, 0}),
          "e^1000 is infinite, and log(0) is -infinity. Which number can be taken from a whole row without changing y?",
          [] {
            return my_log_softmax(constant(Tensor::of<double>({2, 2}, {1000, -1000, -1000, 1000}))).value();
          });
  g.equal("dx where only y_0 counts", Tensor::of<double>({1, 3}, {0.875, -0.25, -0.625}),
          "dy_i/dx_k is [i = k] minus something that does not depend on i. What then is left of the sum over i?", [] {
            const Variable x = parameter(Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)}));
            backward(my_log_softmax(x), Tensor::of<double>({1, 3}, {1, 0, 0}));
            return x.gradient();
          });
  g.prove("the whole proof", "Forward and backward must speak of the same function, for every row by itself.",
          sample_of("my_log_softmax", my_log_softmax, {{3, 4}}));
}

#elif EXERCISE == 4  // cross entropy's backward, with targets that do not count

// The gradient of factor * loss for rows of logits (0, log 2, log 5).
Tensor gradient_for(const std::vector<i64>& targets, double factor) {
  const i64 rows = static_cast<i64>(targets.size());
  const Tensor row = Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)});
  const Variable logits = parameter(broadcast_to(row, {rows, 3}));
  backward(my_cross_entropy(logits, targets) * factor);
  return logits.gradient();
}

void grade(Grader& g) {
  g.equal("dx of one row", Tensor::of<double>({1, 3}, {0.125, -0.75, 0.625}),
          "Which probabilities does the model give, and which would it give if it were never surprised?",
          [] { return gradient_for({1}, 1); });
  g.equal("dx where the loss counts three times", Tensor::of<double>({1, 3}, {0.375, -2.25, 1.875}),
          "What does the chain rule do with dy?", [] { return gradient_for({1}, 3); });
  g.equal("dx of three rows, of which two count",
          Tensor::of<double>({3, 3}, {0.0625, -0.375, 0.3125, 0, 0, 0, 0.0625, 0.125, -0.1875}),
          "A row that the loss does not see cannot change it.", [] {
            return gradient_for({1, -1, 2}, 1);
          });
  g.equal("dx if no row counts", zeros({2, 3}, f64), "The loss is then 0 for all logits. And what is 0 times 1 / 0?",
          [] {
            return gradient_for({-1, -1}, 1);
          });
  g.gradients("numeric gradients of five rows", "Every row that counts has its own target.", [] {
    Rng rng(4);
    return checkable(
        [](const Variable& x) {
          return my_cross_entropy(x, {0, 3, -1, 2, 1});
        },
        {randn({5, 4}, rng, f64)});
  });
}

#elif EXERCISE == 5  // layer norm's backward

Tensor gradient_of(const Tensor& x, const Tensor& dy, double eps) {
  const Variable in = parameter(x.clone());
  backward(my_layer_norm(in, eps), dy);
  return in.gradient();
}

void grade(Grader& g) {
  Rng rng(4);
  const Tensor x = randn({3, 9}, rng, f64), dy = randn({3, 9}, rng, f64);
  g.equal(
      "dx of (0, 2, 2, 8) where only y_0 counts",
      Tensor::of<double>({1, 4}, {3.0 / 18, -2.0 / 18, -2.0 / 18, 1.0 / 18}),
      "x_k reaches y_0 directly, through the mean and through the variance. Which is missing, or too large?", [] {
        return gradient_of(Tensor::of<double>({1, 4}, {0, 2, 2, 8}), Tensor::of<double>({1, 4}, {1, 0, 0, 0}), 1e-9);
      });
  g.equal("dx of a row alone, less its dx beside two others", zeros({1, 9}, f64),
          "The rows beside it must not matter. Over which axis do the means run, and is the axis kept?",
          [&] { return gradient_of(x.rows(0, 1), dy.rows(0, 1), 1e-5) - gradient_of(x, dy, 1e-5).rows(0, 1); });
  g.equal("the sum of dx in each of three rows", zeros({3}, f64),
          "Adding the same number to a whole row does not change y. What does this say about the sum of dx?",
          [&] { return sum(gradient_of(x, dy, 1e-5), {-1}); });
  g.prove("the whole proof", "Which of the three ways from x to y is wrong?",
          sample_of("my_layer_norm", [](const Variable& x) { return my_layer_norm(x, 1e-5); }, {{3, 5}}));
}

#elif EXERCISE == 6  // what layer norm's gradient cannot say, and what eps leaves of it

// The student's sum relative to that of backward's dx.
double fraction_of_sum(const Tensor& x, double eps) {
  Rng rng(6);
  const Tensor dy = randn(x.shape(), rng, f64);
  const Variable in = parameter(x.clone());
  const Variable y = layer_norm(in, {}, {}, eps);
  backward(y, dy);
  const Tensor centred = x - mean(x, {-1}, true);
  const double r = 1 / std::sqrt(mean(centred * centred).item() + eps);
  return along_x_hat(dy, y.value(), r, eps) / dot(in.gradient(), y.value());
}

void grade(Grader& g) {
  const Tensor x = Tensor::of<double>({5}, {0, 2, -3, 8, 1});
  const Tensor first = Tensor::of<double>({2}, {1, 0}), x_hat = Tensor::of<double>({2}, {-1, 1});
  g.equal("the sum where eps = 0", 0,
          "Stretching a row about its mean does not change y if there is no eps. What does this say of dx along x^?",
          [&] { return along_x_hat(first, x_hat, 2, 0); });
  g.equal(
      "a variance of 0.5 and eps = 0.5: your sum relative to the right one", 1,
      "With an eps, stretching a row does change y. Multiply the formula of dx by x^_i and add up over i: which sum in "
      "it is not what it was without eps?",
      [] {
        return fraction_of_sum(Tensor::of<double>({4}, {1, -1, 0, 0}), 0.5);
      });
  g.equal("a row with a small variance: the same fraction", 1,
          "The squares of x^ add up to n var r^2. Replace var, since r^2 (var + eps) = 1.",
          [&] { return fraction_of_sum(x * 0.01, 1e-3); });
}

#endif
