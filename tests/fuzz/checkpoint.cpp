// Chapter 9. A fuzz target: files of tensors, read as a file, as each kind of model, and as an unfinished training.
//
// A random change breaks a checksum, and nothing behind it is ever reached. So the mutator below changes the length,
// the header or the elements, and in three of four cases computes length and checksums anew.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/files/crc32c.h"
#include "core/files/file.h"
#include "core/files/safetensors.h"
#include "tests/core/temporary_folder.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/read_model.h"

using namespace orrery;
using fuzz::accepted;
using fuzz::expect;

namespace {

constexpr std::size_t length_bytes = 8;

// The same bytes under the names of a model and of an unfinished training.
struct Files {
  Files() {
    set_contents(model, "");
    std::filesystem::create_hard_link(model, model + ".resume");
  }
  TemporaryFolder folder;
  std::string model = folder / "m";
};
const Files& files() {
  static const Files two;
  return two;
}

void write(const std::uint8_t* data, std::size_t size) {
  std::FILE* file = std::fopen(files().model.c_str(), "r+b");
  expect(
      file && ::ftruncate(::fileno(file), 0) == 0 && std::fwrite(data, 1, size, file) == size && std::fclose(file) == 0,
      "the input can be written");
}

std::string digits(std::string_view bytes) { return hex_digits(crc32c(std::as_bytes(std::span(bytes)))); }

// Writes `text` behind the first `key`, if there is room.
void put(std::string& header, std::string_view key, const std::string& text) {
  const std::size_t at = header.find(key);
  if (at != header.npos && at + key.size() + text.size() <= header.size())
    header.replace(at + key.size(), text.size(), text);
}

// Checksums that fit, where the header can be understood.
void repair(std::string& header, std::string_view elements) {
  accepted([&] {
    std::string all;
    for (const TensorEntry& entry : parse_header(header, elements.size(), "fuzz").entries)
      all += (all.empty() ? "" : " ") + digits(elements.substr(entry.begin, entry.end - entry.begin));
    put(header, R"("crc32c.tensors":")", all);
  });
  const std::string_view key = R"(,"crc32c.header":")";
  put(header, key, "00000000");
  put(header, key, digits(header));
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  u64 length = 0;
  if (size >= length_bytes) std::memcpy(&length, data, length_bytes);
  if (seed % 4 == 0 || size < length_bytes || length > size - length_bytes) return LLVMFuzzerMutate(data, size, most);
  std::string header(reinterpret_cast<const char*>(data) + length_bytes, length),
      elements(reinterpret_cast<const char*>(data) + length_bytes + length, size - length_bytes - length);
  std::string& changed = seed % 4 == 1 && !elements.empty() ? elements : header;
  const std::size_t before = changed.size(), room = before + most - size;
  changed.resize(room);
  changed.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(changed.data()), before, room));
  repair(header, elements);
  length = header.size();
  std::memcpy(data, &length, length_bytes);
  std::memcpy(data + length_bytes, header.data(), header.size());
  std::memcpy(data + length_bytes + header.size(), elements.data(), elements.size());
  return length_bytes + header.size() + elements.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string& path = files().model;
  write(data, size);
  // Models of other programs may also have tensors of dtypes that are not read.
  accepted([&] { fuzz::read_model(path, summarise_safetensors(path).metadata); });
  TensorFile file;
  if (!accepted([&] { file = read_safetensors(path); })) return 0;
  for (const auto& entry : file.tensors)
    expect(static_cast<std::size_t>(entry.second.bytes()) <= 2 * size, "a tensor has the elements of its file at most");
  if (file.metadata.size() + 2 > most_metadata_keys) return 0;  // two keys are added for the checksums
  fuzz::expect_accepted(
      [&] {
        write_safetensors(path + ".copy", file.tensors, file.metadata);
        const TensorFile again = read_safetensors(path + ".copy");
        const bool same = std::equal(
            file.tensors.begin(), file.tensors.end(), again.tensors.begin(), again.tensors.end(),
            [](const auto& a, const auto& b) { return a.first == b.first && same_bits(a.second, b.second); });
        return same && again.metadata == file.metadata;
      },
      "what is read can be written, and read again as the same");
  return 0;
}
