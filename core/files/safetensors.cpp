// Chapter 9. Safetensors files: writing and reading them, with checksums.
#include "core/files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/files/crc32c.h"
#include "core/files/file.h"
#include "core/files/json.h"
#include "core/files/safetensors_header.h"
#include "core/files/shards.h"

namespace orrery {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they stand in memory");

constexpr u64 length_bytes = 8, largest_header = 100'000'000;  // the format's own limit
constexpr std::string_view checksum_prefix = "crc32c.", header_key = "crc32c.header", tensors_key = "crc32c.tensors";
// What stands before the header's checksum. Nothing else in the header contains it: inside a key or a value, JSON puts
// a backslash before each quote.
constexpr std::string_view header_value_begin = R"(,"crc32c.header":")", no_checksum = "00000000";

using Bytes = std::span<const std::byte>;

Bytes elements(const Tensor& x) {
  return dispatch(x.dtype(), [&](auto t) {
    return std::as_bytes(std::span(x.data<decltype(t)>(), static_cast<size_t>(x.count())));
  });
}

// Replaces the eight digits of the header's checksum in its text; false if they are not there.
bool set_header_checksum(std::string& header, std::string_view digits) {
  const size_t found = header.find(header_value_begin), at = found + header_value_begin.size();
  if (found == std::string::npos || at + digits.size() > header.size()) return false;
  header.replace(at, digits.size(), digits);
  return true;
}

// Tensors with wide elements first, so that each one starts at a multiple of its element size.
std::vector<const TensorMap::value_type*> file_order(const TensorMap& tensors, const std::string& operation) {
  std::vector<const TensorMap::value_type*> order;
  for (const auto& entry : tensors) {
    check(entry.second.defined(), operation, "tensor ", printable(entry.first), " is not defined");
    check(entry.first != "__metadata__", operation, "no tensor may be named __metadata__");
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return bytes_of(a->second.dtype()) > bytes_of(b->second.dtype());
  });
  return order;
}

std::string make_header(const std::vector<const TensorMap::value_type*>& order, const Metadata& metadata,
                        const std::string& operation) {
  std::string checksums;
  for (const auto* entry : order)
    checksums += (checksums.empty() ? "" : " ") + hex_digits(crc32c(elements(entry->second)));
  std::string text;
  try {
    ObjectText with_checksums, header;
    for (const auto& [key, value] : metadata) with_checksums.add(key, value);
    with_checksums.add(tensors_key, checksums).add(header_key, no_checksum);
    header.add_json("__metadata__", with_checksums.text());
    i64 offset = 0;
    for (const auto* entry : order) {
      const auto& [name, tensor] = *entry;
      ObjectText fields;
      fields.add("dtype", name_of(file_dtype(tensor.dtype())));
      fields.add("shape", std::vector<i64>(tensor.shape().begin(), tensor.shape().end()));
      fields.add("data_offsets", std::vector<i64>{offset, offset + tensor.bytes()});
      header.add_json(name, fields.text());
      offset += tensor.bytes();
    }
    text = header.text();
  } catch (const nlohmann::json::exception&) { fail(operation, "a name or a piece of metadata is not UTF-8 text"); }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the tensors begin at a multiple of 8
  check(text.size() <= largest_header, operation, "the header takes ", text.size(), " bytes, ", largest_header,
        " are allowed");
  set_header_checksum(text, hex_digits(crc32c(std::as_bytes(std::span(text)))));
  return text;
}

// Checks the header's own checksum and removes all checksums from its metadata. Returns those of the tensors, one for
// each, or none if the file has none.
std::vector<std::string> take_checksums(TensorHeader& header, std::string text, const std::string& operation) {
  Metadata& metadata = header.metadata;
  const bool ours = std::any_of(metadata.begin(), metadata.end(),
                                [](const auto& pair) { return pair.first.starts_with(checksum_prefix); });
  if (!ours) return {};
  const std::string expected = metadata[std::string(header_key)], list = metadata[std::string(tensors_key)];
  const bool right =
      set_header_checksum(text, no_checksum) && hex_digits(crc32c(std::as_bytes(std::span(text)))) == expected;
  check(right, operation, "the header's checksum is wrong: the file is damaged, or another program changed it");
  std::vector<std::string> checksums;
  for (size_t at = 0; at < list.size(); at += 9) checksums.push_back(list.substr(at, 8));
  check(checksums.size() == header.entries.size(), operation, "has ", checksums.size(), " checksums for ",
        header.entries.size(), " tensors");
  std::erase_if(metadata, [](const auto& pair) { return pair.first.starts_with(checksum_prefix); });
  return checksums;
}

// bfloat16 is the upper half of an f32.
float float_of_bf16(u16 bits) { return std::bit_cast<float>(u32{bits} << 16); }

// IEEE 754's binary16: a sign, 5 bits of exponent e, 10 of fraction f. The value is 2^(e - 15) (1 + f / 1024). If e is
// 0, it is 2^-14 f / 1024; if e is 31, it is infinity or NaN.
float float_of_f16(u16 bits) {
  const u32 sign = u32{bits & 0x8000u} << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
  return std::copysign(static_cast<float>(fraction) * 0x1p-24f, sign != 0 ? -1.0f : 1.0f);
}

// What files of other formats begin with. Users take them for safetensors files.
struct Format {
  std::string_view begin, name;
  bool has_pickle = false;  // which is a program, and is not run here: Python can rewrite it
};
// Tensors that share memory are cloned, since a safetensors file has no two names for one tensor. A checkpoint of
// nanoGPT has the weights under "model", one of Lightning under "state_dict".
constexpr std::string_view convert_pickle =
    R"(python3 -c 'import sys, torch; from safetensors.torch import save_file; d = torch.load(sys.argv[1], )"
    R"(map_location="cpu", weights_only=True); d = d.get("model", d.get("state_dict", d)); save_file({k: )"
    R"(v.contiguous().clone() for k, v in d.items() if torch.is_tensor(v)}, sys.argv[2])' FILE NEW.safetensors)";
using namespace std::string_view_literals;
constexpr Format other_formats[] = {
    {"PK\x03\x04"sv, "a ZIP archive, such as torch.save writes", true},
    {"\x80\x02"sv, "a pickle of Python, such as old versions of torch.save write", true},
    {"GGUF"sv, "a GGUF file"},
    {"\x89HDF"sv, "an HDF5 file"},
    {"\x93NUMPY"sv, "an array of NumPy"},
    {"\x1F\x8B"sv, "compressed by gzip"},
    {"version https"sv, "a pointer of Git LFS, and not the file that it stands for"},
    {"{"sv, "JSON"},
    {"<!"sv, "a web page"},
    {"<html"sv, "a web page"},
};

// Error: a file that cannot be a safetensors file, since its header of `length` bytes would be longer than `most`.
[[noreturn]] void fail_as_foreign(const InputFile& file, u64 length, u64 most, const std::string& operation) {
  std::string begin(std::min<u64>(file.size(), 16), ' ');
  file.read(0, std::as_writable_bytes(std::span(begin)));
  for (const Format& format : other_formats) {
    // A smaller length may be that of a safetensors file that was cut off.
    const bool known = length > largest_header && begin.starts_with(format.begin);
    check(!known, operation, "is not a safetensors file: it is ", format.name,
          format.has_pickle ? "; this makes one of it: " : "", format.has_pickle ? convert_pickle : "");
  }
  fail(operation, "is damaged or not a safetensors file: its header would take ", length, " bytes, at most ", most,
       " are possible");
}

// A file whose header has been read and checked.
struct OpenFile {
  explicit OpenFile(const std::string& of_path) : path(of_path), operation("read " + path), file(path) {
    std::array<std::byte, length_bytes> prefix;
    check(file.size() >= length_bytes, operation, "is not a safetensors file: it has only ", file.size(), " bytes");
    file.read(0, prefix);
    const u64 length = std::bit_cast<u64>(prefix), most = std::min(file.size() - length_bytes, largest_header);
    if (length > most) fail_as_foreign(file, length, most, operation);
    data_begin = length_bytes + length;
    std::string text(length, ' ');
    file.read(length_bytes, std::as_writable_bytes(std::span(text)));
    header = parse_header(text, file.size() - data_begin, operation);
    checksums = take_checksums(header, std::move(text), operation);
  }

  Tensor read(size_t i) const {
    const TensorEntry& entry = header.entries[i];
    switch (entry.dtype) {
      case FileDtype::F32: return read_as<float>(i, [](float x) { return x; });
      case FileDtype::F64: return read_as<double>(i, [](double x) { return x; });
      case FileDtype::I32: return read_as<i32>(i, [](i32 x) { return x; });
      case FileDtype::F16: return read_as<u16>(i, float_of_f16);
      case FileDtype::BF16: return read_as<u16>(i, float_of_bf16);
      default:
        fail(operation, "tensor ", printable(entry.name), " has dtype ", name_of(entry.dtype),
             "; only F32, F64, F16, BF16 and I32 can be read");
    }
  }

  // A tensor whose elements have type T in the file; `value` converts each of them.
  template <class T, class Value> Tensor read_as(size_t i, const Value& value) const {
    using Result = decltype(value(T{}));
    const TensorEntry& entry = header.entries[i];
    Tensor tensor = within(operation, [&] { return Tensor::empty(entry.shape, dtype_of<Result>); });
    const size_t count = static_cast<size_t>(tensor.count());
    Result* to = tensor.write<Result>();
    if constexpr (std::is_same_v<T, Result>) {
      const std::span<std::byte> bytes = std::as_writable_bytes(std::span(to, count));
      file.read(data_begin + entry.begin, bytes);
      check_sum(i, crc32c(bytes));
    } else {
      const u32 checksum = in_parts(i, [&](Bytes bytes) {
        for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
          T stored;
          std::memcpy(&stored, bytes.data() + at, sizeof(T));
          *to++ = value(stored);
        }
      });
      check_sum(i, checksum);
    }
    return tensor;
  }

  void check_sum(size_t i, u32 checksum) const {
    const bool right = checksums.empty() || hex_digits(checksum) == checksums[i];
    check(right, operation, "tensor ", printable(header.entries[i].name), " is damaged: its checksum is wrong");
  }

  // Calls use(bytes) for the bytes of a tensor, part after part; returns their checksum.
  template <class Use> u32 in_parts(size_t i, const Use& use) const {
    const TensorEntry& entry = header.entries[i];
    constexpr u64 at_once = u64{1} << 18;
    std::vector<std::byte> part(std::min(at_once, entry.end - entry.begin));
    u32 checksum = 0;
    for (u64 at = entry.begin; at < entry.end; at += part.size()) {
      const std::span<std::byte> bytes = std::span(part).first(std::min(at_once, entry.end - at));
      file.read(data_begin + at, bytes);
      checksum = crc32c(bytes, checksum);
      use(bytes);
    }
    return checksum;
  }

  TensorSummary summary(size_t i) const {
    return {header.entries[i], hex_digits(in_parts(i, [](Bytes) {})), checksums.empty() ? "" : checksums[i]};
  }

  std::string path, operation;
  InputFile file;
  u64 data_begin = 0;
  TensorHeader header;
  std::vector<std::string> checksums;  // of each tensor; empty if the file has none
};

// Error: a shard that does not hold exactly what the index at `path` says.
void check_shard(const OpenFile& open, const Shard& shard, const std::string& path) {
  if (!shard.names) return;
  const std::string operation = "read " + path;
  std::set<std::string> missing = *shard.names;
  for (const TensorEntry& entry : open.header.entries)
    check(missing.erase(entry.name) > 0, operation, "does not say that tensor ", printable(entry.name), " is in ",
          shard.path, ", which holds it");
  if (!missing.empty())
    fail(operation, "says that tensor ", printable(*missing.begin()), " is in ", shard.path,
         ", which does not hold it");
}

// Calls each(file) for every file that `path` stands for, one after another. Returns their metadata.
template <class Each> Metadata for_each_file(const std::string& path, const Each& each) {
  ModelFiles files = model_files(path);
  Metadata metadata = std::move(files.metadata);
  for (const Shard& shard : files.shards) {
    OpenFile open(shard.path);
    check_shard(open, shard, path);
    each(open);
    metadata.merge(open.header.metadata);
  }
  return metadata;
}

}  // namespace

void write_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  const std::string operation = "write " + path;
  for (const auto& [key, value] : metadata) {
    check(!key.starts_with(checksum_prefix), operation, "metadata key ", printable(key), " is kept for checksums");
  }
  const auto order = file_order(tensors, operation);
  const std::string header = make_header(order, metadata, operation);
  const auto length = std::bit_cast<std::array<std::byte, length_bytes>>(u64{header.size()});
  std::vector<Bytes> parts{length, std::as_bytes(std::span(header))};
  u64 data_bytes = 0;
  for (const auto* entry : order) {
    parts.push_back(elements(entry->second));
    data_bytes += parts.back().size();
  }
  parse_header(header, data_bytes, operation);  // what could not be read again is not written
  replace_file(path, parts);
}

TensorFile read_safetensors(const std::string& path, const std::function<bool(const std::string& name)>& chosen) try {
  TensorFile result;
  result.metadata = for_each_file(path, [&](const OpenFile& open) {
    for (size_t i = 0; i < open.header.entries.size(); ++i) {
      const std::string& name = open.header.entries[i].name;
      if (!chosen || chosen(name)) result.tensors[name] = open.read(i);
    }
  });
  return result;
} catch (const std::bad_alloc&) { fail("read " + path, "there is not enough memory for it"); }

FileSummary summarise_safetensors(const std::string& path, bool with_checksums) try {
  FileSummary result;
  result.metadata = for_each_file(path, [&](const OpenFile& open) {
    result.bytes += open.file.size();
    result.header_bytes += open.data_begin;
    ++result.files;
    for (size_t i = 0; i < open.header.entries.size(); ++i) {
      result.tensors.push_back(with_checksums ? open.summary(i) : TensorSummary{open.header.entries[i], "", ""});
      result.tensors.back().file = open.path;
    }
  });
  return result;
} catch (const std::bad_alloc&) { fail("read " + path, "there is not enough memory for it"); }

Metadata read_safetensors_metadata(const std::string& path) try {
  return for_each_file(path, [](const OpenFile&) {});
} catch (const std::bad_alloc&) {
  // A lack of memory says nothing about what the file holds, so this is no error of the file.
  throw SystemError("read " + path, "there is not enough memory for it");
}

}  // namespace orrery
