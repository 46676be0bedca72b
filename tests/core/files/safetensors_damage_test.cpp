// Chapter 9. Tests of damage to files of tensors: cut, a bit flipped, tensors in each other's place.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "core/files/file.h"
#include "core/tensor_ops.h"
#include "tests/core/files/safetensors_files.h"

using namespace orrery;
using small::error_of;

namespace {

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

TEST_CASE("promise 20: every truncation and an added byte are found") {
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
