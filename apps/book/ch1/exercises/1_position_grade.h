// Chapter 1. Grades exercise 1.1.

void grade(Grader& g) {
  const auto number = [](const std::vector<i64>& shape, const std::vector<i64>& index) {
    return [=] { return static_cast<double>(my_position(shape, index)); };
  };
  g.equal("element (1, 1) of [3, 4]", number({3, 4}, {1, 1}), 5,
          "One whole row of 4 elements stands before row 1, and one element of row 1 before the element itself.");
  g.equal("element (1, 2, 3) of [2, 3, 4], its last", number({2, 3, 4}, {1, 2, 3}), 23,
          "How many elements does a step along the first axis jump over? It is the product of all sizes after it.");
  g.check(
      "all elements of [2, 3, 4] in order",
      [] {
        i64 next = 0;
        bool in_order = true;
        for (i64 i = 0; i < 2; ++i)
          for (i64 j = 0; j < 3; ++j)
            for (i64 k = 0; k < 4; ++k) in_order = in_order && my_position({2, 3, 4}, {i, j, k}) == next++;
        return in_order;
      },
      "The last index counts fastest. Write down the places of (0, 0, 0), (0, 0, 1), (0, 1, 0) and (1, 0, 0).");
  g.equal("element (-1, 0, -2) of [2, 3, 4]", number({2, 3, 4}, {-1, 0, -2}), 14,
          "Add the size of its axis to a negative index.");
  g.equal("a scalar", number({}, {}), 0, "No axes, one element.");
}
