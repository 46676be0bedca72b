// Chapter 9. Tests of the readers of tables, of CoNLL's columns and of NumPy's files: what they take, and that each
// wrong file is one line that names the place.
#include "apps/data/table.h"

#include <doctest/doctest.h>

#include "apps/data/npy.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace std::string_literals;
using small::error_of;
using Row = std::vector<std::string>;

namespace {

Table table_of(const std::string& name, const std::string& text, const TableOptions& options = {}) {
  const TemporaryFolder folder;
  return read_table(written(folder / name, text), options);
}

// What follows the folder in the error of reading a file.
template <class Read> std::string error_in(const std::string& name, const std::string& text, const Read& read) {
  const TemporaryFolder folder;
  const std::string error = error_of([&] { read(written(folder / name, text)); }), path = folder / name;
  const size_t at = error.find(path);
  REQUIRE_MESSAGE(at != error.npos, error);
  CHECK(error.find('\n') == error.npos);
  return error.substr(at + path.size());
}
std::string table_error(const std::string& name, const std::string& text, const TableOptions& options = {}) {
  return error_in(name, text, [&](const std::string& path) { read_table(path, options); });
}
std::string conll_error(const std::string& text, const ConllColumns& columns = {}) {
  return error_in("a.conll", text, [&](const std::string& path) { read_conll(path, columns); });
}
std::string npy_error(const std::string& text) { return error_in("a.npy", text, read_npy); }

TaggedText tagged(const std::string& text, const ConllColumns& columns = {}) {
  const TemporaryFolder folder;
  return read_conll(written(folder / "a.conll", text), columns);
}

std::string npy(const std::string& header, const std::string& numbers, char version = 1) {
  std::string text = "\x93NUMPY"s + version + '\0' + static_cast<char>(header.size()) + '\0';
  if (version > 1) text += "\0\0"s;
  return text + header + numbers;
}

}  // namespace

TEST_CASE("commas with quotes: separators, line ends and quotes inside, marks and empty lines around") {
  const Table t = table_of("a.csv", "\xEF\xBB\xBFlabel,text\r\n1,\"a, \"\"b\"\"\nc\"\r\n\r\n0,\n2,x \"y\" z");
  CHECK(t.names == Row{"label", "text"});
  CHECK(t.rows == std::vector<Row>{{"1", "a, \"b\"\nc"}, {"0", ""}, {"2", "x \"y\" z"}});
  CHECK(t.lines == std::vector<i64>{2, 5, 6});
  CHECK(t.empty_lines == 1);
  CHECK(t.column("text") == 1);
  CHECK(t.place(1).ends_with("a.csv, row 2 (line 5)"));
  CHECK(error_of([&] { t.column("txt"); }).ends_with("a.csv has no column 'txt'; its columns are label, text"));
}

TEST_CASE("in a .tsv a quote is a character, in a .csv not, whatever separates; separator and header can be chosen") {
  CHECK(table_of("a.tsv", "s\tl\n\"open\t1\nb\"\t0\n").rows == std::vector<Row>{{"\"open", "1"}, {"b\"", "0"}});
  CHECK(table_of("a.tsv", "s\tl\n\"o\np\"\t1\n", {.quotes = true}).rows == std::vector<Row>{{"o\np", "1"}});
  CHECK(table_of("a.csv", "s\tl\n\"o\np\"\t1\n").rows == std::vector<Row>{{"o\np", "1"}});
  CHECK(table_of("a.csv", "s;l\n\"1,5; \"\"2\"\"\";1\n").rows == std::vector<Row>{{"1,5; \"2\"", "1"}});
  const Table t = table_of("a.txt", "x;y\n", {.separator = ';', .header = false});
  CHECK(t.names == Row{"1", "2"});
  CHECK(t.rows == std::vector<Row>{{"x", "y"}});
}

TEST_CASE("a wrong table is refused in one line that names row and line") {
  CHECK(table_error("a.csv", "a,b\n1,2\n\n3\n") == ", row 2 (line 4) has 1 field instead of 2");
  CHECK(table_error("a.csv", "a,b\n1,2,3\n") == ", row 1 (line 2) has 3 fields instead of 2");
  CHECK(table_error("a.tsv", "a\tb\n1\n") == ", row 1 (line 2) has 1 field instead of 2");
  CHECK(table_error("a.tsv", "a\tb\n\"1\n2\"\t3\n") ==
        ", row 1 (line 2) has 1 field instead of 2; in a .tsv, quotes are characters; "
        "name the file .csv if fields are in quotes");
  CHECK(table_error("a.txt", "a\tb\n1\t2\n") ==
        ": the header has tabs; name the file .tsv, or .csv if fields are in quotes");
  CHECK(table_error("a.csv", "a,b\n\"1\n2,3\n") == ", row 1 (line 2): the quotes that open in line 2 are not closed");
  CHECK(table_error("a.csv", "a,b\n1,\"2\"3\n") == ", row 1 (line 2): '3' stands after closing quotes");
  CHECK(table_error("a.csv", "a,b\n1,\xff\n") == ", line 2: byte 7 begins no UTF-8 character");
  CHECK(table_error("a.csv", "a,a\n1,2\n") == ", header: two columns are called 'a'");
  CHECK(table_error("a.csv", "a,b\n") == " has no row below its header");
  CHECK(table_error("a.csv", "") == " is empty");
}

TEST_CASE("CoNLL: tabs or spaces, lines of white space between sentences, columns by number") {
  const TaggedText t = tagged("-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects  VBZ O\n \t\n\n. . O");
  CHECK(t.marks == 1);
  REQUIRE(t.sentences.size() == 2);
  CHECK(t.sentences[0].tokens == Row{"EU", "rejects"});
  CHECK(t.sentences[0].tags == Row{"B-ORG", "O"});
  CHECK(t.sentences[1].lines == std::vector<i64>{7});
  CHECK(tagged("EU NNP B-ORG\n", {.tag = 1}).sentences[0].tags == Row{"NNP"});
  const TaggedText u = tagged("# newpar\n# text = # = x\n1\t#\tSYM\n# = x\t2\tX\n", {.token = 1});
  CHECK(u.marks == 2);
  CHECK(u.sentences.at(0).tags == Row{"SYM", "X"});
  const TaggedText v = tagged("1-2\tzum\t_\n1\tzu\tA\n1.1\tx\t_\n2\tdem\tD\n1-\t-1\tS\n", {.token = 1});
  CHECK(v.marks == 2);
  REQUIRE(v.sentences.size() == 1);
  CHECK(v.sentences[0].tokens == Row{"zu", "dem", "-1"});
  CHECK(v.sentences[0].lines == std::vector<i64>{2, 4, 5});
  CHECK(tagged("1-2 _\n8.1 _\n").sentences[0].tokens == Row{"1-2", "8.1"});
  const TaggedText tabs = tagged("a b\tO\r\n\t\r\n#\tB-x\r\n");
  REQUIRE(tabs.sentences.size() == 2);
  CHECK(tabs.sentences[0].tokens == Row{"a b"});
  CHECK(tabs.sentences[1].tags == Row{"B-x"});
  CHECK(conll_error("a\tO\nb\n") == ", line 2 has 1 column instead of 2");
  CHECK(conll_error("a\tO\n\tO\n") == ", line 2 has an empty token");
  CHECK(conll_error("a O\n", {.tag = 2}) == " has 2 columns, and none with number 3");
  CHECK(conll_error("a O\n", {.tag = -3}) == " has 2 columns, and none with number -3");
  CHECK(conll_error("\n\n") == " has no sentence");
  CHECK(conll_error("a O\n\xC3 O\n") == ", line 2: byte 5 begins no UTF-8 character");
}

TEST_CASE("NumPy's files come back as they were written, and i8 as i32") {
  const TemporaryFolder folder;
  for (const Tensor& x :
       {full({2, 3}, 0.1), small::normal({5}), arange(4).reshape({2, 1, 2}), full({}, 7.0), zeros({0, 3})}) {
    write_npy(folder / "a.npy", x);
    CHECK(same_bits(read_npy(folder / "a.npy"), x));
    CHECK(contents(folder / "a.npy").find('\n') % 64 == 63);
  }
  const std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n";
  set_contents(folder / "b.npy", npy(header, "\x05\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"s, 2));
  CHECK(small::elements(read_npy(folder / "b.npy")) == std::vector<double>{5, -1});
  CHECK(npy_error(npy(header, "\x05\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0"s)) ==
        ": number 1 of the i8 is 4294967296, which does not fit into i32");
}

TEST_CASE("other files of NumPy are refused by name") {
  const auto header = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  };
  CHECK(
      npy_error(npy(header("'>f4'", "False", "(1,)"), "1234")) ==
      ": holds numbers of type ''>f4''; '<f4', '<f8', '<i4' and '<i8' can be read: numpy.save(path, x.astype('<f4'))");
  CHECK(npy_error(npy(header("[('a', '<f4')]", "False", "(1,)"), "1234")).find("holds numbers of type") !=
        std::string::npos);
  CHECK(npy_error(npy(header("'<f4'", "True", "(1, 1)"), "1234")) ==
        ": is in Fortran's order: numpy.save(path, numpy.ascontiguousarray(x))");
  CHECK(npy_error(npy(header("'<f4'", "False", "(2,)"), "1234")) == ": has 4 bytes of numbers, its shape [2] needs 8");
  CHECK(npy_error(npy(header("'<f4'", "False", "(1,)"), "12345678")) ==
        ": has 8 bytes of numbers, its shape [1] needs 4");
  CHECK(npy_error(npy(header("'<f4'", "False", "(4611686018427387904, 4)"), "1234")).find("has fewer") !=
        std::string::npos);
  CHECK(npy_error(npy(header("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1)"), "1234")).find("more than 6 axes") !=
        std::string::npos);
  for (const std::string shape : {"(1x,)", "(-1,)", "(99999999999999999999,)"})
    CHECK(npy_error(npy(header("'<f4'", "False", shape), "1234")).find("the shape is") != std::string::npos);
  CHECK(npy_error(npy("{}", "")) == ": is no file of NumPy (.npy)");
  CHECK(npy_error(npy(header("'<f4'", "False", "(1,)"), "1234", 9)) ==
        ": has version 9 of NumPy's format, not 1, 2 or 3");
  CHECK(npy_error("PK\3\4 a file of another kind") == ": is no file of NumPy (.npy)");
  CHECK(npy_error(npy("{'descr': '<f4' and it ends", "").substr(0, 20)) == ": is cut off in its header");
}
