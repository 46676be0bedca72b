// Chapter 9. The header of a safetensors file: the parser and the checks.
#include "core/files/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace orrery {
namespace {

constexpr std::string_view metadata_name = "__metadata__";

// In the order of FileDtype.
struct Kind {
  std::string_view name;
  i64 bits;
};
constexpr std::array<Kind, 22> kinds{
    {{"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8},        {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"U16", 16},
     {"I16", 16},    {"F16", 16},    {"BF16", 16},   {"U32", 32},        {"I32", 32},        {"F32", 32},
     {"C64", 64},    {"U64", 64},    {"I64", 64},    {"F64", 64}}};

// Receives the parser's events and accepts only what may come next.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  Reader(const std::string& operation, u64 file_bytes, u64 data_bytes)
      : operation_(operation),
        most_tensors_(std::max(most_small_tensors, file_bytes / bytes_for_tensor)),
        data_bytes_(data_bytes) {}

  std::map<std::string, TensorEntry> entries;
  std::map<std::string, std::string> metadata;

  bool start_object(std::size_t) override {
    switch (at_) {
      case At::outside: at_ = At::top; return true;
      case At::name: at_ = At::entry; return true;
      case At::metadata_name: at_ = At::metadata; return true;
      default: return misplaced("an object");
    }
  }
  bool key(string_t& key) override {
    switch (at_) {
      case At::top: start_entry(key); return true;
      case At::metadata: key_ = key; return true;
      default: start_field(key); return true;
    }
  }
  bool end_object() override {
    if (at_ == At::entry) end_entry();
    at_ = at_ == At::top ? At::outside : At::top;
    return true;
  }
  bool string(string_t& value) override {
    if (at_ == At::metadata) {
      check(metadata.size() < most_metadata_keys, operation_, "has more than ", most_metadata_keys,
            " keys of metadata");
      count_text(key_.size() + value.size());
      check(metadata.emplace(key_, value).second, operation_, "metadata key ", printable(key_), " appears twice");
      return true;
    }
    if (at_ != At::entry || field_ != Field::dtype) return misplaced("text");
    entry_.dtype = parse_dtype(value);
    return true;
  }
  bool start_array(std::size_t) override {
    if (at_ != At::entry || (field_ != Field::shape && field_ != Field::offsets)) return misplaced("a list");
    at_ = At::list;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (at_ != At::list) return misplaced("a number");
    const size_t most = field_ == Field::shape ? Shape::max_rank : 2;
    check(list_.size() < most, operation_, "tensor ", printable(name_), " has more than ", most,
          field_ == Field::shape ? " axes" : " offsets");
    list_.push_back(value);
    return true;
  }
  bool end_array() override {
    if (field_ == Field::shape) {
      shape_ = std::exchange(list_, {});
    } else {
      check(list_.size() == 2, operation_, "tensor ", printable(name_), " needs two offsets");
      entry_.begin = list_[0];
      entry_.end = list_[1];
      list_.clear();
    }
    at_ = At::entry;
    return true;
  }
  bool number_integer(number_integer_t) override { return misplaced("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return misplaced("a number that is not a whole one below 2^64");
  }
  bool null() override { return misplaced("null"); }
  bool boolean(bool) override { return misplaced("true or false"); }
  bool binary(binary_t&) override { return misplaced("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail(operation_, "the header is not valid JSON: the error is at byte ", position);
  }

 private:
  enum class At { outside, top, name, entry, list, metadata_name, metadata };
  enum class Field { dtype, shape, offsets };
  static constexpr std::array<std::string_view, 3> fields{"dtype", "shape", "data_offsets"};  // in the order of Field

  void count_text(u64 bytes) {
    text_bytes_ += bytes;
    check(text_bytes_ <= longest_text(data_bytes_), operation_, "its names and texts have more than ",
          longest_text(data_bytes_), " bytes, too many for tensors of ", data_bytes_);
  }
  bool misplaced(std::string_view what) const { fail(operation_, "the header has ", what, " where none is allowed"); }

  void start_entry(const std::string& name) {
    if (name == metadata_name) {
      check(!std::exchange(has_metadata_, true), operation_, "the header has two sections of metadata");
      at_ = At::metadata_name;
      return;
    }
    check(entries.size() < most_tensors_, operation_, "has more than ", most_tensors_,
          " tensors, too many for its size");
    check(!entries.contains(name), operation_, "tensor ", printable(name), " appears twice");
    count_text(2 * name.size());  // here and in its entry
    name_ = name;
    entry_ = TensorEntry();
    entry_.name = name;
    seen_ = {};
    at_ = At::name;
  }

  void start_field(const std::string& field) {
    const auto found = std::find(fields.begin(), fields.end(), field);
    check(found != fields.end(), operation_, "tensor ", printable(name_), " has an unknown field ", printable(field));
    const auto index = static_cast<size_t>(found - fields.begin());
    field_ = static_cast<Field>(index);
    check(!std::exchange(seen_[index], true), operation_, "tensor ", printable(name_), " has ", field, " twice");
  }

  FileDtype parse_dtype(const std::string& value) const {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) { return kind.name == value; });
    check(found != kinds.end(), operation_, "tensor ", printable(name_), " has an unknown dtype, ", printable(value));
    return static_cast<FileDtype>(found - kinds.begin());
  }

  void end_entry() {
    check(seen_[0] && seen_[1] && seen_[2], operation_, "tensor ", printable(name_),
          " needs dtype, shape and data_offsets");
    constexpr u64 largest = std::numeric_limits<i64>::max();
    u64 bits = static_cast<u64>(bits_of(entry_.dtype));
    std::vector<i64> sizes;
    for (u64 size : shape_) {
      check(!__builtin_mul_overflow(bits, size, &bits) && size <= largest, operation_, "tensor ", printable(name_),
            " has a shape that overflows");
      sizes.push_back(static_cast<i64>(size));
    }
    entry_.shape = Shape(sizes);
    check(bits % 8 == 0, operation_, "tensor ", printable(name_), " of ", name_of(entry_.dtype), ' ', entry_.shape,
          " takes no whole number of bytes");
    const u64 bytes = bits / 8;
    check(entry_.begin <= entry_.end && entry_.end - entry_.begin == bytes, operation_, "tensor ", printable(name_),
          " has offsets [", entry_.begin, ", ", entry_.end, "), but ", name_of(entry_.dtype), ' ', entry_.shape,
          " takes ", bytes, " bytes");
    entries.emplace(name_, std::move(entry_));
  }

  const std::string& operation_;
  const u64 most_tensors_, data_bytes_;
  u64 text_bytes_ = 0;  // of names and metadata so far
  At at_ = At::outside;
  Field field_ = Field::dtype;
  bool has_metadata_ = false;
  std::string key_, name_;
  TensorEntry entry_;
  std::array<bool, 3> seen_{};  // fields of this entry
  std::vector<u64> list_, shape_;
};

// The bytes of the longest text, number or blank space: the parser keeps each in memory several times.
u64 longest_token(std::string_view json) {
  u64 longest = 0, length = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const bool begins_or_ends_text = json[i] == '"';
    const bool escapes = in_text && json[i] == '\\';
    const bool separates = !in_text && std::string_view("{}[],:").find(json[i]) != std::string_view::npos;
    length = begins_or_ends_text || separates ? 0 : length + 1 + (escapes ? 1 : 0);
    longest = std::max(longest, length);
    in_text ^= begins_or_ends_text;
    if (escapes) ++i;
  }
  return longest;
}

// Each tensor must begin where the one before it ended, and the last must end with the file.
void check_contiguous(const std::vector<TensorEntry>& entries, u64 data_bytes, const std::string& operation) {
  u64 end = 0;
  for (const TensorEntry& entry : entries) {
    check(entry.begin == end, operation, "tensor ", printable(entry.name), " begins at byte ", entry.begin,
          " of the data, expected ", end, ": tensors may neither overlap nor leave a gap");
    end = entry.end;
  }
  check(end <= data_bytes, operation, "is cut off: its tensors take ", end, " bytes, the file holds ", data_bytes);
  check(end == data_bytes, operation, "its tensors take ", end, " bytes, the file holds ", data_bytes);
}

}  // namespace

std::string_view name_of(FileDtype dtype) { return kinds[static_cast<size_t>(dtype)].name; }

i64 bits_of(FileDtype dtype) { return kinds[static_cast<size_t>(dtype)].bits; }

bool is_floating(FileDtype dtype) {
  const std::string_view name = name_of(dtype);
  return name.starts_with('F') || name.starts_with("BF");
}

FileDtype file_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return FileDtype::F32;
    case Dtype::f64: return FileDtype::F64;
    case Dtype::i32: return FileDtype::I32;
  }
  fail("safetensors", "there is no file dtype for ", dtype);
}

TensorHeader parse_header(std::string_view text, u64 data_bytes, const std::string& operation) {
  check(text.starts_with('{'), operation, "is not a safetensors file: its header does not start with '{'");
  check(text.find('\0') == text.npos, operation, "the header has a zero byte");  // where the parser would stop
  const u64 longest = longest_token(text);
  check(longest <= longest_text(data_bytes), operation, "its header has a part of ", longest,
        " bytes, too many for tensors of ", data_bytes);
  Reader reader(operation, text.size() + data_bytes, data_bytes);
  nlohmann::json::sax_parse(text, &reader);
  TensorHeader header{.entries = {}, .metadata = std::move(reader.metadata)};
  header.entries.reserve(reader.entries.size());
  for (auto& [name, entry] : reader.entries) header.entries.push_back(std::move(entry));
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_contiguous(header.entries, data_bytes, operation);
  return header;
}

}  // namespace orrery
