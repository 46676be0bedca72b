// Chapter 9. Tests of safetensors files: what goes in comes out, and no damage passes.
#include "core/files/safetensors.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "core/files/crc32c.h"
#include "core/files/file.h"
#include "core/tensor_ops.h"
#include "tests/core/files/safetensors_files.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::error_of;

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
                              std::string(8, '\1')));
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
                              std::string(32, '\1'));
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

TEST_CASE("only wanted tensors are read, and only they need a dtype that can be read") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  set_contents(path, raw_file(R"({"mask": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]},
      "a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
                              std::string(8, '\1')));
  CHECK(error_of([&] { read_safetensors(path); }) ==
        "read " + path + ": tensor 'mask' has dtype BOOL; only F32, F64, F16, BF16 and I32 can be read");
  const TensorMap file = read_safetensors(path, [](const std::string& name) { return name != "mask"; }).tensors;
  CHECK(file.size() == 1);
  CHECK(file.at("a").dtype() == f32);
}

TEST_CASE("files that are not safetensors files") {
  const TemporaryFolder folder;
  CHECK(complaint(folder, "") == "is not a safetensors file: it has only 0 bytes");
  CHECK(complaint(folder, "1234567") == "is not a safetensors file: it has only 7 bytes");
  CHECK(complaint(folder, std::string(8, '\0')) == "is not a safetensors file: its header does not start with '{'");
  CHECK(
      complaint(folder, std::string(16, '\xFF')) ==
      "is damaged or not a safetensors file: its header would take 18446744073709551615 bytes, at most 8 are possible");
  CHECK(complaint(folder, raw_file(" {}", "")) == "is not a safetensors file: its header does not start with '{'");
  CHECK(complaint(folder, raw_file("{}", std::string(1, '\1'))) == "its tensors take 0 bytes, the file holds 1");
  CHECK(complaint(folder, raw_file("{}", "")) == "");
}

TEST_CASE("files of other formats are named, truncated ones are not taken for them") {
  const TemporaryFolder folder;
  const std::string rest(100, 'x');
  // It names the command that makes a file that can be read: what a pickle says is not run here.
  CHECK(
      complaint(folder, "PK\x03\x04" + rest) ==
      "is not a safetensors file: it is a ZIP archive, such as torch.save writes; this makes one of it: python3 -c "
      "'import sys, torch; from safetensors.torch import save_file; d = torch.load(sys.argv[1], map_location=\"cpu\", "
      "weights_only=True); d = d.get(\"model\", d.get(\"state_dict\", d)); save_file({k: v.contiguous().clone() for "
      "k, v in d.items() if torch.is_tensor(v)}, sys.argv[2])' FILE NEW.safetensors");
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
                              std::string(4, '\1')));
  const FileSummary foreign = summarise_safetensors(path);
  CHECK(foreign.bytes == contents(path).size());
  CHECK(foreign.header_bytes == foreign.bytes - 4);
  CHECK(foreign.metadata == Metadata{{"format", "pt"}});
  REQUIRE(foreign.tensors.size() == 2);
  CHECK(foreign.tensors[0].entry.name == "mask");
  CHECK(foreign.tensors[0].entry.shape == Shape{4});
  CHECK(name_of(foreign.tensors[0].entry.dtype) == "BOOL");
  CHECK(foreign.tensors[0].checksum == hex_digits(crc32c(std::as_bytes(std::span("\1\1\1\1", 4)))));
  CHECK(foreign.tensors[0].stored == "");
  CHECK_FALSE(foreign.tensors[0].damaged());
  CHECK(foreign.tensors[1].checksum == "00000000");
}

TEST_CASE("a summary says which tensors are damaged, also in parts beyond the first") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  constexpr i64 numbers = 300'000;  // 1.2 MB, more than the 256 KB that are read at once
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
  const auto tensors = [](u64 count, size_t least_bytes = 0) {
    std::string text;
    for (u64 i = 0; i < count; ++i)
      text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    text = "{" + text + "}";
    return raw_file(text + std::string(least_bytes - std::min(least_bytes, text.size()), ' '), "");
  };
  CHECK(complaint(folder, tensors(most_small_tensors)) == "");
  CHECK(complaint(folder, tensors(most_small_tensors + 1)) == "has more than 1024 tensors, too many for its size");
  constexpr size_t larger = bytes_for_tensor * (most_small_tensors + 1);
  CHECK(complaint(folder, tensors(most_small_tensors + 1, larger)) == "");
  CHECK(complaint(folder, tensors(most_small_tensors + 2, larger)) ==
        "has more than 1025 tensors, too many for its size");
  const auto keys = [](u64 count) {
    std::string text;
    for (u64 i = 0; i < count; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":"")";
    return raw_file(R"({"__metadata__":{)" + text + "}}", "");
  };
  CHECK(complaint(folder, keys(most_metadata_keys)) == "");
  CHECK(complaint(folder, keys(most_metadata_keys + 1)) == "has more than 256 keys of metadata");
  const auto with_text = [](const std::string& text, u64 numbers) {
    return raw_file(R"({"__metadata__":{"text":")" + text + R"("},"a":{"dtype":"F32","shape":[)" +
                        std::to_string(numbers) + R"(],"data_offsets":[0,)" + std::to_string(4 * numbers) + "]}}",
                    std::string(4 * numbers, '\1'));
  };
  const std::string longest(most_small_token - 6, 'x');  // the key counts, and the tensor's name counts twice
  CHECK(complaint(folder, with_text(longest, 1)) == "");
  CHECK(complaint(folder, with_text(longest + "x", 1)) ==
        "its names and texts have more than 131072 bytes, too many for tensors of 4");
  CHECK(complaint(folder, with_text(longest + "\\\"" + longest, 1)) != "");  // one text, with a quote in it
  CHECK(complaint(folder, with_text(longest + std::string(6666, 'x'), 10000)) == "");
  CHECK(complaint(folder, raw_file("{" + std::string(most_small_token + 1, ' ') + "}", "")) != "");
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
    CHECK(complaint(folder, raw_file(std::string(R"({"__metadata__": {)") + metadata + "}}", "")) ==
          "the header's checksum is wrong: the file is damaged, or another program changed it");
  }
  std::string header = R"({"__metadata__":{"crc32c.tensors":"","crc32c.header":"00000000"},)"
                       R"("w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})";
  header.replace(header.find("00000000"), 8, hex_digits(crc32c(std::as_bytes(std::span(header)))));
  CHECK(complaint(folder, raw_file(header, "")) == "has 0 checksums for 1 tensors");
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
  set_contents(path, raw_file(header, ""));
  std::error_code unsupported;
  std::filesystem::resize_file(path, 8 + header.size() + bytes, unsupported);  // a hole: it takes no disk
  if (unsupported) return;
  CHECK(error_of([&] {
          read_safetensors(path);
        }).starts_with("read " + path + ": tensor: shape [" + std::to_string(count) + "] of f32 takes "));
}
