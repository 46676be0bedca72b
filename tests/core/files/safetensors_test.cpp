// Chapter 9. Tests of safetensors files: what goes in comes out, and no damage passes.
#include "core/files/safetensors.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <iomanip>
#include <limits>
#include <sstream>

#include "core/files/crc32c.h"
#include "core/files/file.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::error_of;

namespace {

// A file as other programs write it: no checksums, any header.
std::string raw_file(const std::string& header, size_t data_bytes) {
  std::string length(8, '\0');
  const u64 size = header.size();
  std::memcpy(length.data(), &size, 8);
  return length + header + std::string(data_bytes, '\1');
}

// What reading a file of this text says is wrong with it, without the path.
std::string complaint(const TemporaryFolder& folder, const std::string& text) {
  const std::string path = folder / "hostile.safetensors";
  set_contents(path, text);
  const std::string error = error_of([&] { read_safetensors(path); });
  const std::string prefix = "read " + path + ": ";
  REQUIRE_MESSAGE((error.empty() || error.starts_with(prefix)), error);
  return error.empty() ? "" : error.substr(prefix.size());
}

TensorMap small_tensors() {
  return {{"weight", Tensor::of<float>({2, 2}, {1.5F, -2, 0, 4})},
          {"bias", Tensor::of<double>({2}, {1e300, -0.0})},
          {"ids", Tensor::of<i32>({3}, {1, -2, 3})}};
}

// Eight tensors of 2 KB and one of a single number: of every dtype that is written.
TensorMap tensors_of_16_kilobytes() {
  Rng rng(1);
  TensorMap tensors{{"single", Tensor::of<float>({}, {3})}, {"f64", randn({256}, rng, f64)}};
  for (int i = 0; i < 6; ++i) tensors["layers." + std::to_string(i) + ".weight"] = randn({16, 32}, rng);
  tensors["ids"] = randint(-1000, 1000, {512}, rng);
  return tensors;
}

// Changes bits of an open file: quicker than opening it each time.
class BitFlipper {
 public:
  explicit BitFlipper(const std::string& path) : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    REQUIRE(file_.number() >= 0);
  }
  void flip(u64 byte, int bit) {
    unsigned char value = 0;
    const bool read = ::pread(file_.number(), &value, 1, static_cast<off_t>(byte)) == 1;
    value ^= static_cast<unsigned char>(1 << bit);
    if (!read || ::pwrite(file_.number(), &value, 1, static_cast<off_t>(byte)) != 1) FAIL("cannot flip a bit");
  }

 private:
  Descriptor file_;
};

}  // namespace

TEST_CASE("every dtype and shape comes back bit for bit, with its metadata") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.safetensors";
  Rng rng(1);
  const float nan = std::bit_cast<float>(0x7FC12345u), infinity = std::numeric_limits<float>::infinity();
  const TensorMap tensors{{"f32", randn({3, 5, 7}, rng)},
                          {"f64", randn({11}, rng, f64)},
                          {"i32", randint(-100, 100, {2, 3}, rng)},
                          {"scalar", Tensor::of<float>({}, {3})},
                          {"empty", zeros({0, 4})},
                          {"empty f64", zeros({3, 0}, f64)},
                          {"six axes", randn({1, 2, 1, 2, 1, 3}, rng)},
                          {"special", Tensor::of<float>({5}, {nan, infinity, -infinity, -0.0F, 1e-42F})},
                          {"a \"name\" \\ with\nspecial letters \xC3\xA9 \xE4\xB8\xAD", zeros({1})},
                          {"", zeros({2})}};
  const Metadata metadata{{"config", R"({"d_model": 64, "crc32c.header":"00000000"})"},
                          {R"(a"crc32c.header)", "another key that ends alike"},
                          {"", ""},
                          {"\xC3\xA9", "\n\t\"\\"}};
  write_safetensors(path, tensors, metadata);
  const TensorFile read = read_safetensors(path);
  CHECK(read.metadata == metadata);
  CHECK(read_safetensors_metadata(path) == metadata);
  REQUIRE(read.tensors.size() == tensors.size());
  for (const auto& entry : tensors) CHECK_MESSAGE(same_bits(read.tensors.at(entry.first), entry.second), entry.first);
}

TEST_CASE("a file without tensors, and a view of a larger tensor") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  write_safetensors(path, {});
  CHECK(read_safetensors(path).tensors.empty());
  const Tensor whole = arange(12).reshape({4, 3});
  write_safetensors(path, {{"rows", whole.rows(1, 3)}});
  CHECK(same_bits(read_safetensors(path).tensors.at("rows"), Tensor::of<i32>({2, 3}, {3, 4, 5, 6, 7, 8})));
}

TEST_CASE("the layout is the one other readers expect, and the same every time") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  write_safetensors(path, small_tensors());
  const std::string text = contents(path);
  u64 length = 0;
  std::memcpy(&length, text.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(text.size() == 8 + length + 16 + 12 + 16);
  const std::string header = text.substr(8, length);
  CHECK(header.starts_with(R"({"__metadata__":{"crc32c.)"));
  CHECK(header.find(R"("bias":{"dtype":"F64","shape":[2],"data_offsets":[0,16]})") != header.npos);  // widest first
  CHECK(header.find(R"("ids":{"dtype":"I32","shape":[3],"data_offsets":[16,28]})") != header.npos);
  CHECK(header.find(R"("weight":{"dtype":"F32","shape":[2,2],"data_offsets":[28,44]})") != header.npos);
  write_safetensors(folder / "b", small_tensors());
  CHECK(contents(folder / "b") == text);
}

TEST_CASE("a file that another program wrote, in any order and with spaces, is read") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  set_contents(path, raw_file(R"({ "b": {"shape": [1], "data_offsets": [4, 8], "dtype": "I32"},
      "none": {"dtype": "F64", "shape": [0, 7], "data_offsets": [4, 4]},
      "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, "__metadata__": {"format": "pt"} }   )",
                              8));
  const TensorFile file = read_safetensors(path);
  CHECK(file.metadata == Metadata{{"format", "pt"}});
  CHECK(same_bits(file.tensors.at("b"), full({1}, 0x01010101, Dtype::i32)));
  CHECK(file.tensors.at("a").shape() == Shape{});
  CHECK(file.tensors.at("none").shape() == Shape{0, 7});
}

TEST_CASE("halves become the f32 of the same value") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  // Binary16: 1, -2, the largest, the smallest normal and subnormal number, -0, infinity, NaN (IEEE 754, table 3.5).
  const std::vector<u16> f16{0x3C00, 0xC000, 0x7BFF, 0x0400, 0x0001, 0x8000, 0x7C00, 0x7E01};
  const std::vector<u16> bf16{0x3F80, 0xC000, 0x7F7F, 0x0080, 0x3DCD, 0x8000, 0xFF80, 0x7FC0};
  std::string text = raw_file(R"({"h": {"dtype": "F16", "shape": [8], "data_offsets": [0, 16]},
      "b": {"dtype": "BF16", "shape": [8], "data_offsets": [16, 32]}})",
                              32);
  std::memcpy(text.data() + text.size() - 32, f16.data(), 16);
  std::memcpy(text.data() + text.size() - 16, bf16.data(), 16);
  set_contents(path, text);
  const TensorMap file = read_safetensors(path).tensors;
  const std::vector<double> half{1, -2, 65504, 0x1p-14, 0x1p-24, 0, INFINITY},
      brain{1, -2, 0x1.FEp127, 0x1p-126, 0.10009765625, 0, -INFINITY};
  for (size_t i = 0; i < half.size(); ++i) {
    CHECK(file.at("h").at(static_cast<i64>(i)) == half[i]);
    CHECK(file.at("b").at(static_cast<i64>(i)) == brain[i]);
  }
  CHECK(std::signbit(file.at("h").at(5)));
  CHECK(std::isnan(file.at("h").at(7)));
  CHECK(std::isnan(file.at("b").at(7)));
  CHECK(file.at("h").dtype() == f32);
}

TEST_CASE("only what is wanted is read, and need be of a kind that tensors have") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  set_contents(path, raw_file(R"({"mask": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]},
      "a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
                              8));
  CHECK(error_of([&] { read_safetensors(path); }) ==
        "read " + path + ": tensor 'mask' has dtype BOOL; only F32, F64, F16, BF16 and I32 can be read");
  const TensorMap file = read_safetensors(path, [](const std::string& name) { return name != "mask"; }).tensors;
  CHECK(file.size() == 1);
  CHECK(file.at("a").dtype() == f32);
}

TEST_CASE("promise 20: every truncation and every added byte is found") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  for (const TensorMap& tensors : {small_tensors(), tensors_of_16_kilobytes()}) {
    write_safetensors(path, tensors, {{"config", "{}"}});
    CHECK(complaint(folder, contents(path) + '\0') != "");
    for (size_t length = contents(path).size(); length-- > 0;) {
      std::filesystem::resize_file(path, length);
      const std::string error = error_of([&] { read_safetensors(path); });
      REQUIRE_MESSAGE(error.starts_with("read " + path + ": "), length);
    }
  }
}

namespace {

// In the elements, the error names the tensor whose bit it is.
void check_each_bit(const TensorMap& tensors, u64 least_bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "a", damaged = " is damaged: its checksum is wrong";
  write_safetensors(path, tensors, {{"config", "{}"}});
  const FileSummary summary = summarise_safetensors(path);
  CHECK(summary.bytes >= least_bytes);
  BitFlipper file(path);
  size_t next = 0;  // the tensor that ends behind this byte
  for (u64 byte = 0; byte < summary.bytes; ++byte) {
    const bool is_element = byte >= summary.header_bytes;
    while (is_element && summary.header_bytes + summary.tensors[next].entry.end <= byte) ++next;
    const std::string expected =
        "read " + path + ": " + (is_element ? "tensor '" + summary.tensors[next].entry.name + "'" + damaged : "");
    for (int bit = 0; bit < 8; ++bit) {
      file.flip(byte, bit);
      const std::string error = error_of([&] { read_safetensors(path); });
      file.flip(byte, bit);
      if (is_element ? error == expected : error.starts_with(expected)) continue;
      REQUIRE_MESSAGE(false, "byte ", byte, " bit ", bit, ": ", error);
    }
  }
  CHECK(error_of([&] { read_safetensors(path); }) == "");
}

}  // namespace

TEST_CASE("promise 20: every single flipped bit is found, and its tensor named") {
  check_each_bit(small_tensors(), 300);
  check_each_bit(TensorMap(), 80);
}

TEST_CASE("slow: promise 20: every single flipped bit of a file of 16 KB is found, and its tensor named") {
  check_each_bit(tensors_of_16_kilobytes(), 16384);
}

TEST_CASE("promise 20: any two tensors that have changed places are found, and the first is named") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  write_safetensors(path, tensors_of_16_kilobytes());
  const std::string text = contents(path);
  const FileSummary summary = summarise_safetensors(path);
  int pairs = 0;
  for (size_t i = 0; i < summary.tensors.size(); ++i)
    for (size_t j = i + 1; j < summary.tensors.size(); ++j) {
      const TensorEntry &first = summary.tensors[i].entry, &second = summary.tensors[j].entry;
      if (first.end - first.begin != second.end - second.begin) continue;
      std::string swapped = text;
      const u64 size = first.end - first.begin, at = summary.header_bytes;
      swapped.replace(at + first.begin, size, text, at + second.begin, size);
      swapped.replace(at + second.begin, size, text, at + first.begin, size);
      CHECK(complaint(folder, swapped) == "tensor '" + first.name + "' is damaged: its checksum is wrong");
      ++pairs;
    }
  CHECK(pairs == 28);
}

TEST_CASE("promise 20: damaged elements are named, and so are tensors in each other's place") {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{"first", full({4}, 1.0)}, {"second", full({4}, 2.0)}});
  const std::string text = contents(folder / "a");
  const size_t data = text.size() - 32;
  std::string damaged = text;
  damaged[data + 20] ^= 1;
  CHECK(complaint(folder, damaged) == "tensor 'second' is damaged: its checksum is wrong");
  const std::string swapped = text.substr(0, data) + text.substr(data + 16) + text.substr(data, 16);
  CHECK(complaint(folder, swapped) == "tensor 'first' is damaged: its checksum is wrong");
  std::string renamed = text;
  renamed.replace(renamed.find("first"), 5, "fir5t");
  CHECK(complaint(folder, renamed) ==
        "the header's checksum is wrong: the file is damaged, or another program changed it");
}

TEST_CASE("files that are not safetensors files") {
  const TemporaryFolder folder;
  CHECK(complaint(folder, "") == "is not a safetensors file: it has only 0 bytes");
  CHECK(complaint(folder, "1234567") == "is not a safetensors file: it has only 7 bytes");
  CHECK(complaint(folder, std::string(8, '\0')) == "is not a safetensors file: its header does not start with '{'");
  CHECK(
      complaint(folder, std::string(16, '\xFF')) ==
      "is damaged or not a safetensors file: its header would take 18446744073709551615 bytes, at most 8 are possible");
  CHECK(complaint(folder, raw_file(" {}", 0)) == "is not a safetensors file: its header does not start with '{'");
  CHECK(complaint(folder, raw_file("{}", 1)) == "its tensors take 0 bytes, the file holds 1");
  CHECK(complaint(folder, raw_file("{}", 0)) == "");
}

TEST_CASE("files of other formats are named, truncated ones are not taken for them") {
  const TemporaryFolder folder;
  const std::string rest(100, 'x');
  CHECK(complaint(folder, "PK\x03\x04" + rest) ==
        "is not a safetensors file: it is a ZIP archive, such as torch.save writes");
  CHECK(complaint(folder, R"({"metadata": {"total_size": 1}})") == "is not a safetensors file: it is JSON");
  CHECK(complaint(folder, "version https://git-lfs.github.com/spec/v1\n") ==
        "is not a safetensors file: it is a pointer of Git LFS, and not the file that it stands for");
  CHECK(complaint(folder, "<!DOCTYPE html>" + rest) == "is not a safetensors file: it is a web page");
  CHECK(complaint(folder, "GGUF\x03" + rest) == "is not a safetensors file: it is a GGUF file");
  const std::string of_640_bytes("\x80\x02\0\0\0\0\0\0", 8);  // the length, and what a pickle begins with
  CHECK(complaint(folder, of_640_bytes + "{\"w\"") ==
        "is damaged or not a safetensors file: its header would take 640 bytes, at most 4 are possible");
}

TEST_CASE("a summary has everything but the elements, of any dtype") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  set_contents(path, raw_file(R"({"mask": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]},
      "none": {"dtype": "I64", "shape": [0], "data_offsets": [4, 4]}, "__metadata__": {"format": "pt"}})",
                              4));
  const FileSummary foreign = summarise_safetensors(path);
  CHECK(foreign.bytes == contents(path).size());
  CHECK(foreign.header_bytes == foreign.bytes - 4);
  CHECK(foreign.metadata == Metadata{{"format", "pt"}});
  REQUIRE(foreign.tensors.size() == 2);
  CHECK(foreign.tensors[0].entry.name == "mask");
  CHECK(foreign.tensors[0].entry.shape == Shape{4});
  CHECK(name_of(foreign.tensors[0].entry.dtype) == "BOOL");
  const std::string ones(4, '\1');
  std::ostringstream checksum;
  checksum << std::hex << std::setw(8) << std::setfill('0') << crc32c(std::as_bytes(std::span(ones)));
  CHECK(foreign.tensors[0].checksum == checksum.str());
  CHECK(foreign.tensors[0].stored == "");
  CHECK_FALSE(foreign.tensors[0].damaged());
  CHECK(foreign.tensors[1].checksum == "00000000");
}

TEST_CASE("a summary says which tensors are damaged, also in parts beyond the first") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  constexpr i64 numbers = 300'000;  // more than a megabyte, which is read at once
  write_safetensors(path, {{"large", arange(numbers)}, {"small", zeros({2})}}, {{"key", "value"}});
  const FileSummary whole = summarise_safetensors(path);
  REQUIRE(whole.tensors.size() == 2);
  CHECK(whole.metadata == Metadata{{"key", "value"}});
  for (const TensorSummary& tensor : whole.tensors) {
    CHECK(tensor.stored == tensor.checksum);
    CHECK_FALSE(tensor.damaged());
  }
  flip_bit(path, 8 * (whole.header_bytes + numbers * sizeof(i32) - 1));
  const FileSummary damaged = summarise_safetensors(path);
  CHECK(damaged.tensors[0].entry.name == "large");
  CHECK(damaged.tensors[0].damaged());
  CHECK_FALSE(damaged.tensors[1].damaged());
  flip_bit(path, 8 * 20);
  CHECK(error_of([&] { summarise_safetensors(path); }) != "");
}

TEST_CASE("promise 21: more tensors, keys or header than a file of its size can need are refused") {
  const TemporaryFolder folder;
  const auto tensors = [](u64 count) {
    std::string text;
    for (u64 i = 0; i < count; ++i)
      text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    return raw_file("{" + text + "}", 0);
  };
  CHECK(complaint(folder, tensors(most_small_tensors)) == "");
  CHECK(complaint(folder, tensors(most_small_tensors + 1)) == "has more than 1024 tensors, too many for its size");
  const auto keys = [](u64 count) {
    std::string text;
    for (u64 i = 0; i < count; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":"")";
    return raw_file(R"({"__metadata__":{)" + text + "}}", 0);
  };
  CHECK(complaint(folder, keys(most_metadata_keys)) == "");
  CHECK(complaint(folder, keys(most_metadata_keys + 1)) == "has more than 256 keys of metadata");
  const auto with_text = [](const std::string& text, u64 numbers) {
    return raw_file(R"({"__metadata__":{"text":")" + text + R"("},"a":{"dtype":"F32","shape":[)" +
                        std::to_string(numbers) + R"(],"data_offsets":[0,)" + std::to_string(4 * numbers) + "]}}",
                    4 * numbers);
  };
  const std::string longest(most_small_token, 'x');
  CHECK(complaint(folder, with_text(longest, 1)) == "");
  CHECK(complaint(folder, with_text(longest + "x", 1)) ==
        "its header has a part of 131073 bytes, too many for tensors of 4");
  CHECK(complaint(folder, with_text(longest + "\\\"" + longest, 1)) != "");  // one text, with a quote in it
  CHECK(complaint(folder, with_text(longest + std::string(8000, 'x'), 10000)) == "");
  CHECK(complaint(folder, raw_file("{" + std::string(most_small_token + 1, ' ') + "}", 0)) != "");
}

TEST_CASE("promise 21: what could not be read again is not written") {
  const TemporaryFolder folder;
  const std::string path = folder / "a", prefix = "write " + path + ": ";
  Metadata metadata;
  for (u64 i = 0; i <= most_metadata_keys; ++i) metadata[std::to_string(i)] = "";
  CHECK(error_of([&] { write_safetensors(path, {}, metadata); }) == prefix + "has more than 256 keys of metadata");
  const std::string text(most_small_token + 1, 'x');
  CHECK(error_of([&] {
          write_safetensors(path, {}, {{"a", text}});
        }) == prefix + "its header has a part of 131073 bytes, too many for tensors of 0");
  CHECK(folder.count() == 0);
}

TEST_CASE("checksums come all together or not at all") {
  const TemporaryFolder folder;
  for (const char* metadata : {R"("crc32c.tensors": "")", R"("crc32c.header": "00000000")",
                               R"("crc32c.header":"00000000")", R"("crc32c.header":"0")"}) {
    CHECK(complaint(folder, raw_file(std::string(R"({"__metadata__": {)") + metadata + "}}", 0)) ==
          "the header's checksum is wrong: the file is damaged, or another program changed it");
  }
}

TEST_CASE("what does not fit the header is named with the file") {
  const TemporaryFolder folder;
  CHECK(complaint(folder, raw_file(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 8)) == "");
  CHECK(complaint(folder, raw_file(R"({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", 8)) ==
        "tensor 'w' has offsets [0, 8), but F32 [3] takes 12 bytes");
}

TEST_CASE("what cannot be written leaves the old file") {
  const TemporaryFolder folder;
  const std::string path = folder / "a", prefix = "write " + path + ": ";
  write_safetensors(path, small_tensors());
  const std::string before = contents(path);
  CHECK(error_of([&] { write_safetensors(path, {{"w", Tensor()}}); }) == prefix + "tensor 'w' is not defined");
  CHECK(error_of([&] {
          write_safetensors(path, {{"__metadata__", zeros({1})}});
        }) == prefix + "no tensor may be named __metadata__");
  CHECK(error_of([&] {
          write_safetensors(path, {}, {{"crc32c.header", "0"}});
        }) == prefix + "metadata key 'crc32c.header' is kept for checksums");
  CHECK(error_of([&] {
          write_safetensors(path, {{"\xFF", zeros({1})}});
        }) == prefix + "a name or a piece of metadata is not UTF-8 text");
  CHECK(contents(path) == before);
  CHECK(folder.count() == 1);
}

TEST_CASE("a tensor for which no machine has the memory is an error that names the file") {
  const TemporaryFolder folder;
  const std::string path = folder / "large";
  const u64 count = (u64{1} << 42) + 1024, bytes = 2 * count;  // as f32 they take 16 TB
  const std::string header = R"({"a": {"dtype": "F16", "shape": [)" + std::to_string(count) +
                             R"(], "data_offsets": [0, )" + std::to_string(bytes) + "]}}";
  set_contents(path, raw_file(header, 0));
  std::error_code unsupported;
  std::filesystem::resize_file(path, 8 + header.size() + bytes, unsupported);  // a hole: it takes no disk
  if (unsupported) return;
  CHECK(error_of([&] {
          read_safetensors(path);
        }).starts_with("read " + path + ": tensor: shape [" + std::to_string(count) + "] of f32 takes "));
}
