// Chapter 9. Grades exercise 9.2.

using Tensors = std::map<std::string, Tensor>;

struct FileParts {
  std::string header, data;
  size_t begin;  // of the data
};

// The file that the student writes, as its first eight bytes cut it.
FileParts parts_of_file(const Tensors& tensors) {
  const std::string file = my_file(tensors);
  check(file.size() >= 8, "the file", "has only ", file.size(), " bytes");
  u64 length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(file[i]);
  check(length <= file.size() - 8, "the file", "has ", file.size(), " bytes, and a header of ", length);
  const size_t begin = 8 + static_cast<size_t>(length);
  return FileParts{file.substr(8, begin - 8), file.substr(begin), begin};
}

std::string without_spaces(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

void grade_header(Grader& g, const std::string& question, const Tensors& tensors, const std::string& expected,
                  const std::string& hint) {
  g.check(
      question,
      [&] {
        const std::string header = without_spaces(parts_of_file(tensors).header);
        check(header == expected, "the header", "is ", header);
        return true;
      },
      hint);
}

void grade(Grader& g) {
  const Tensors one{{"x", Tensor::of<float>({1}, {7})}};
  const Tensors two{{"bias", Tensor::of<float>({2}, {0.5F, -1})},
                    {"weight", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})}};
  const Tensors empty_first{{"a", zeros({0})}, {"b", Tensor::of<float>({1}, {1})}};
  g.check(
      "the first eight bytes hold the length of the header",
      [&] {
        const std::string header = parts_of_file(one).header;  // spaces may stand behind the JSON, and not before it
        return header.starts_with("{") && without_spaces(header).ends_with("}");
      },
      "The length is that of the JSON and its spaces alone, and its lowest byte comes first.");
  grade_header(g, "the header of one tensor", one, R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
               "dtype, shape and data_offsets, in this order. Offsets count bytes, and begin at 0 behind the header.");
  grade_header(g, "the header of two tensors", two,
               R"({"bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
               R"("weight":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]}})",
               "Each tensor begins where the one before it ends.");
  grade_header(g, "the header where the first tensor holds no numbers", empty_first,
               R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
               "A comma stands before every entry but the first. How do you know which entry is the first?");
  g.check(
      "the data begin at a multiple of 8",
      [&] { return parts_of_file(one).begin % 8 == 0 && parts_of_file(two).begin % 8 == 0; },
      "How many spaces are missing? The length counts them.");
  g.check(
      "the numbers",
      [&] {
        const std::string data = parts_of_file(two).data;
        std::string expected;
        for (const auto& [name, x] : two)
          expected.append(reinterpret_cast<const char*>(x.data<float>()), static_cast<size_t>(x.bytes()));
        check(data.size() == expected.size(), "the data", "have ", data.size(), " bytes, not ", expected.size());
        return data == expected;
      },
      "Four bytes for each number, in the order of the header, and nothing between or behind them.");
}
