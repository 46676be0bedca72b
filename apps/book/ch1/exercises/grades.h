// Chapter 1. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // where an element stands

void grade(Grader& g) {
  const auto number = [](const std::vector<i64>& shape, const std::vector<i64>& index) {
    return [=] { return static_cast<double>(my_position(shape, index)); };
  };
  g.equal("element (1, 1) of [3, 4]", 5,
          "Which index counts fastest, the first or the last? How many elements stand before row 1?",
          number({3, 4}, {1, 1}));
  g.equal("element (1, 2, 3) of [2, 3, 4], its last", 23,
          "How many elements does a step along the first axis jump over? It is the product of all sizes after it.",
          number({2, 3, 4}, {1, 2, 3}));
  g.check("all elements of [2, 3, 4] in order",
          "The last index counts fastest. Write down the places of (0, 0, 0), (0, 0, 1), (0, 1, 0) and (1, 0, 0).", [] {
            i64 next = 0;
            bool in_order = true;
            for (i64 i = 0; i < 2; ++i)
              for (i64 j = 0; j < 3; ++j)
                for (i64 k = 0; k < 4; ++k) in_order = in_order && my_position({2, 3, 4}, {i, j, k}) == next++;
            return in_order;
          });
  g.equal("element (-1, 0, -2) of [2, 3, 4]", 14,
          "A negative index counts from the end. Which size says where the end is?", number({2, 3, 4}, {-1, 0, -2}));
  g.equal("a scalar", 0, "No axes, one element.", number({}, {}));
}

#elif EXERCISE == 2  // broadcasting by hand

void grade(Grader& g) {
  const auto gives = [&](const std::string& question, const std::vector<i64>& a, const std::vector<i64>& b,
                         const std::vector<i64>& expected, const std::string& hint) {
    const auto wrong = [=]() -> Tensor {
      std::vector<i32> sizes;
      for (const i64 size : my_broadcast(a, b)) sizes.push_back(static_cast<i32>(size));
      return Tensor::of<i32>({static_cast<i64>(sizes.size())}, sizes);
    };
    std::vector<i32> wanted(expected.begin(), expected.end());
    g.equal(question, Tensor::of<i32>({static_cast<i64>(wanted.size())}, wanted), hint, wrong);
  };
  const auto refuses = [&](const std::string& question, const std::vector<i64>& a, const std::vector<i64>& b) {
    g.check(question,
            "Two sizes that differ fit only if one of them is 1. Anything else is a mistake that must not pass.", [=] {
              try {
                my_broadcast(a, b);
              } catch (const Error&) { return true; }
              return false;
            });
  };
  gives("[3, 1] and [4]", {3, 1}, {4}, {3, 4}, "Write one shape below the other, flush right.");
  gives("[4] and [3, 1]", {4}, {3, 1}, {3, 4}, "The order of the two operands must not matter.");
  gives("[8, 1, 6] and [7, 1]", {8, 1, 6}, {7, 1}, {8, 7, 6},
        "The shapes are aligned at the last axis, not at the first one.");
  gives("[2, 5] and a scalar, []", {2, 5}, {}, {2, 5}, "A scalar has no axes; all of them are filled up with 1.");
  refuses("[3, 1] and [2, 2] do not fit", {3, 1}, {2, 2});
  refuses("[2, 3] and [2] do not fit", {2, 3}, {2});
  refuses("[0] and [3] do not fit", {0}, {3});
  gives("[0, 3] and [1, 3]", {0, 3}, {1, 3}, {0, 3},
        "An axis of size 1 is repeated as often as the other one says, and that may be 0 times.");
}

#elif EXERCISE == 3  // rows and columns of mean 0

void grade(Grader& g) {
  const Tensor x = Tensor::of<double>({2, 3}, {1, 2, 6, 5, 4, 12});
  const Tensor square = Tensor::of<double>({2, 2}, {1, 3, 10, 50});
  g.equal("columns of a [2, 3]", Tensor::of<double>({2, 3}, {-2, -1, -3, 2, 1, 3}),
          "The mean of a column runs down axis 0. Three columns have three means: what is the shape of all of them?",
          [&] { return my_centred_columns(x); });
  g.equal("rows of a [2, 3]", Tensor::of<double>({2, 3}, {-2, -1, 3, -2, -3, 5}),
          "Two rows have two means. Written below [2, 3], flush right, what must their shape be to fit?",
          [&] { return my_centred_rows(x); });
  g.equal("columns of a [2, 2]", Tensor::of<double>({2, 2}, {-4.5, -23.5, 4.5, 23.5}),
          "Over which axis does the mean of a column run? In a square matrix the wrong one raises no error.",
          [&] { return my_centred_columns(square); });
  g.equal("rows of a [2, 2]", Tensor::of<double>({2, 2}, {-1, 1, -20, 20}),
          "In a square matrix a wrong shape is no error: [2] fits [2, 2], but as a row. Keep the axis that you reduce.",
          [&] { return my_centred_rows(square); });
}

#elif EXERCISE == 4  // one-hot rows, and the table that they read

void grade(Grader& g) {
  const Tensor ids = Tensor::of<i32>({3}, {2, 0, 3});
  const Tensor table = Tensor::of<double>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  g.equal("one-hot rows of the ids 2, 0, 3 among 4 words",
          Tensor::of<double>({3, 4}, {0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1}),
          "Row i has its 1 in the column that id i names. As numbers in memory: where does row i begin?",
          [&] { return my_one_hot(ids, 4); });
  g.equal(
      "ids of shape [2, 2]", Tensor::of<double>({2, 2, 2}, {0, 1, 1, 0, 1, 0, 0, 1}),
      "All axes of the ids stay, and one is appended. In memory the ids are one row of numbers, whatever their shape.",
      [&] {
        return my_one_hot(Tensor::of<i32>({2, 2}, {1, 0, 0, 1}), 2);
      });
  g.equal(
      "the rows 2, 0, 3 of a table", Tensor::of<double>({3, 2}, {5, 6, 1, 2, 7, 8}),
      "A row times a matrix is a sum of the matrix's rows, each times a number of the row. Which numbers are not 0?",
      [&] { return my_lookup(ids, table); });
  g.equal("ids of shape [1, 2]", Tensor::of<double>({1, 2, 2}, {7, 8, 7, 8}),
          "matmul takes [..., m, k] and a shared [k, n]: leading axes of the one-hot tensor may stay.", [&] {
            return my_lookup(Tensor::of<i32>({1, 2}, {3, 3}), table);
          });
}

#elif EXERCISE == 5  // products of many matrices

void grade(Grader& g) {
  const Tensor left = Tensor::of<double>({2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 0, 2});
  const Tensor right = Tensor::of<double>({2, 3, 2}, {1, 0, 2, 1, 0, 3, 7, 8, 9, 10, 11, 12});
  g.equal("two products at once", Tensor::of<double>({2, 2, 2}, {5, 11, 14, 23, 7, 8, 22, 24}),
          "Row i of the left matrix meets column j of the right one, and both belong to the same b.",
          [&] { return my_product(left, right); });
  g.equal("one right matrix for both", Tensor::of<double>({2, 2, 2}, {5, 11, 14, 23, 1, 0, 0, 6}),
          "A right matrix of two axes has no b: right.rank() says which of the two kinds you were given.", [&] {
            return my_product(left, right.rows(0, 1).reshape({3, 2}));
          });
  Rng rng(1);
  const Tensor a = randn({3, 2, 5}, rng, f64), b = randn({3, 5, 4}, rng, f64);
  g.equal("random matrices against the library's product", matmul(a, b),
          "All sizes differ here. Which of m, k, n and B bounds which loop?", [&] { return my_product(a, b); });
  g.check("inner sizes that differ are refused", "left's last size and right's last but one are the same k.", [&] {
    try {
      my_product(left, zeros({2, 4, 2}, f64));
    } catch (const Error&) { return true; }
    return false;
  });
}

#endif
