// Chapter 9. NumPy's files: six bytes of magic, two of the version, the length of the header, the header, the numbers.
// The header is a Python dictionary, as NumPy writes it: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#include "apps/data/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sstream>

#include "core/files/file.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t alignment = 64;  // of the numbers in the file

// What stands in the header after 'key': up to the next comma, or to the closing parenthesis of a tuple.
std::string header_value(const std::string& header, const std::string& key, const std::string& operation) {
  const std::string name = '\'' + key + "':";
  const size_t found = header.find(name);
  check(found != header.npos, operation, "the header has no ", key);
  const size_t begin = std::min(header.find_first_not_of(' ', found + name.size()), header.size());
  const char end = begin < header.size() && header[begin] == '(' ? ')' : ',';
  const size_t length = std::min(header.find(end, begin), header.size()) - begin;
  return header.substr(begin, length);
}

// The sizes in "(3, 4".
Shape sizes_in(const std::string& tuple, const std::string& operation) {
  check(tuple.starts_with('('), operation, "the shape is ", printable(tuple));
  std::string list = tuple.substr(1);
  std::replace(list.begin(), list.end(), ',', ' ');
  std::istringstream sizes(list);
  Shape shape;
  for (std::string word; sizes >> word;) {
    i64 size = 0;
    const auto [end, wrong] = std::from_chars(word.data(), word.data() + word.size(), size);
    check(wrong == std::errc() && end == word.data() + word.size() && size >= 0, operation, "the shape is ",
          printable(tuple + ')'));
    check(shape.rank() < Shape::max_rank, operation, "has more than ", Shape::max_rank,
          " axes: ", printable(tuple + ')'));
    shape = shape.plus(size);
  }
  return shape;
}

// Whole numbers of 8 bytes as i32.
Tensor narrowed(const std::vector<i64>& numbers, const Shape& shape, const std::string& operation) {
  Tensor x = Tensor::empty(shape, Dtype::i32);
  i32* to = x.write<i32>();
  for (size_t i = 0; i < numbers.size(); ++i) {
    to[i] = static_cast<i32>(numbers[i]);
    check(to[i] == numbers[i], operation, "number ", i, " of the i8 is ", numbers[i], ", which does not fit into i32");
  }
  return x;
}

}  // namespace

Tensor read_npy(const std::string& path) {
  const InputFile file(path);
  const std::string operation = "read " + path;
  std::array<unsigned char, 12> start{};
  file.read(0, std::as_writable_bytes(std::span(start)).first(std::min<u64>(start.size(), file.size())));
  const int version = start[6];
  check(file.size() > start.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0, operation,
        "is no file of NumPy (.npy)");
  check(version >= 1 && version <= 3, operation, "has version ", version, " of NumPy's format, not 1, 2 or 3");
  u64 length = start[8] | u64{start[9]} << 8;
  if (version > 1) length |= u64{start[10]} << 16 | u64{start[11]} << 24;
  const u64 begin = version > 1 ? 12 : 10;
  check(length <= file.size() - begin, operation, "is cut off in its header");
  std::string header(length, ' ');
  file.read(begin, std::as_writable_bytes(std::span(header)));
  const std::string descr = header_value(header, "descr", operation),
                    order = header_value(header, "fortran_order", operation);
  const bool wide = descr == "'<i8'";
  check(wide || descr == "'<f4'" || descr == "'<f8'" || descr == "'<i4'", operation, "holds numbers of type ",
        printable(descr), "; '<f4', '<f8', '<i4' and '<i8' can be read: numpy.save(path, x.astype('<f4'))");
  check(order == "False", operation, "is in Fortran's order: numpy.save(path, numpy.ascontiguousarray(x))");
  const u64 bytes = file.size() - begin - length, each = descr[3] == '8' ? 8 : 4;
  const Shape shape = sizes_in(header_value(header, "shape", operation), operation);
  u64 count = 1;
  for (const i64 size : shape) {
    check(count == 0 || static_cast<u64>(size) <= bytes / count, operation, "has fewer numbers than its shape ", shape,
          " needs");
    count *= static_cast<u64>(size);
  }
  check(count * each == bytes, operation, "has ", bytes, " bytes of numbers, its shape ", shape, " needs ",
        count * each);
  if (wide) {
    std::vector<i64> numbers(count);
    file.read(begin + length, std::as_writable_bytes(std::span(numbers)));
    return narrowed(numbers, shape, operation);
  }
  Tensor x = Tensor::empty(shape, descr == "'<f4'" ? f32 : descr == "'<f8'" ? f64 : Dtype::i32);
  dispatch(x.dtype(), [&](auto t) {
    file.read(begin + length, std::as_writable_bytes(std::span(x.write<decltype(t)>(), count)));
  });
  return x;
}

void write_npy(const std::string& path, const Tensor& x) {
  check_defined(x, "write_npy");
  std::string shape;
  for (const i64 size : x.shape()) shape += std::to_string(size) + ", ";
  if (x.rank() > 1) shape.resize(shape.size() - 2);  // "3, 4", but "3, " for one axis
  if (x.rank() == 1) shape.pop_back();
  const char* descr = x.dtype() == f32 ? "<f4" : x.dtype() == f64 ? "<f8" : "<i4";
  std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t start = magic.size() + 4;
  header.resize((start + header.size() + alignment) / alignment * alignment - start, ' ');
  header.back() = '\n';
  std::string front = std::string(magic) + '\x01' + '\0';
  front += static_cast<char>(header.size() & 0xFF);
  front += static_cast<char>(header.size() >> 8);
  front += header;
  dispatch(x.dtype(), [&](auto t) {
    const std::array<std::span<const std::byte>, 2> parts{
        std::as_bytes(std::span(front)),
        std::as_bytes(std::span(x.data<decltype(t)>(), static_cast<size_t>(x.count())))};
    replace_file(path, parts);
  });
}

}  // namespace orrery
