// Chapter 8. Promise 22: memory that runs out is an error, at whichever allocation, and nothing is lost. Promise 21: a
// file that is read takes little more memory than it has bytes.
#include <doctest/doctest.h>

#include <functional>
#include <sstream>

#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/run_program.h"
#include "tests/core/files/safetensors_files.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

namespace {

// The program, scarce_memory.cpp, writes thousands of files, each of which is flushed to its disk: quick where that is
// memory.
std::string program_in_quick_folder(const TemporaryFolder& folder) {
  return std::filesystem::is_directory("/dev/shm")
             ? "TMPDIR=/dev/shm '" ORRERY_SCARCE_MEMORY "'"
             : "TMPDIR='" + folder.path().string() + "' '" ORRERY_SCARCE_MEMORY "'";
}

// The program lets every allocation fail; built with a sanitizer, every eleventh.
#ifdef ORRERY_SANITIZED
constexpr i64 every = 11;
#else
constexpr i64 every = 1;
#endif

void check_short_of_memory(const std::string& training, i64 least_failures) {
  const TemporaryFolder folder;
  const program::Result result =
      program::shell("OMP_WAIT_POLICY=passive " + program_in_quick_folder(folder) + " " + training);
  CAPTURE(result.text);
  CHECK(result.exit_code == 0);
  CHECK(program::line(result.text, -1) == training + ": 0 wrong, 0 blocks left");
  std::istringstream lines(result.text);
  int parts = 0;
  i64 failures = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(": "), end = line.find(" failures");
    if (end == line.npos) continue;
    ++parts;
    const i64 of_part = std::stoll(line.substr(at + 2));
    CHECK(of_part > 100 / every);
    failures += of_part;
  }
  CHECK(failures > least_failures / every);
  CHECK(parts == 6);  // step, save and evaluation, once and for good
}

std::string comma_separated(size_t times, const std::function<std::string(size_t)>& part) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += (i > 0 ? "," : "") + part(i);
  return text;
}

std::string tiny_tensors(size_t count) {
  return comma_separated(count, [](size_t i) {
    return "\"" + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  });
}

}  // namespace

TEST_CASE("promise 22: a GPT that is short of memory, at whichever allocation, loses nothing") {
  check_short_of_memory("lm", 14'000);
}

TEST_CASE("slow: promise 22: a Transformer that is short of memory, at whichever allocation, loses nothing") {
  check_short_of_memory("toy", 30'000);
}

TEST_CASE("slow: promise 22: a translator that is short of memory, at whichever allocation, loses nothing") {
  check_short_of_memory("translate", 28'000);
}

namespace {

struct FileCase {
  std::string name, contents, answer;
  i64 times = 1;    ///< how often the tensors are larger than the file: halves become f32
  i64 tensors = 0;  ///< how many of them are read, if there are many
};

std::vector<FileCase> cases_of_tensors(const std::string& model) {
  const std::string elements(4'000'000, '\1');
  const std::string shape_of_terabytes = R"({"a":{"dtype":"F32","shape":[1000000,1000000],"data_offsets":[0,8]}})";
  const std::string many_tensors = raw_file("{" + tiny_tensors(20000) + "}", "");
  const auto small_tensor = [](size_t i) {
    return '"' + std::to_string(i) + R"(":{"dtype":"F32","shape":[24],"data_offsets":[)" + std::to_string(96 * i) +
           "," + std::to_string(96 * (i + 1)) + "]}";
  };
  return {{"a model", model, "read"},
          {"halves", raw_file(R"({"a":{"dtype":"F16","shape":[2000000],"data_offsets":[0,4000000]}})", elements),
           "read", 2},
          {"a length of 100 MB", std::string("\0\xE1\xF5\x05\0\0\0\0{", 9), "its header would take"},
          {"terabytes", raw_file(shape_of_terabytes, elements.substr(0, 8)), "but F32 [1000000, 1000000] takes"},
          {"1,024 tensors", raw_file("{" + tiny_tensors(1024) + "}", ""), "read"},
          {"1,025 tensors", raw_file("{" + tiny_tensors(1025) + "}", ""), "more than 1024 tensors"},
          {"4,000 tensors", raw_file("{" + comma_separated(4000, small_tensor) + "}", elements.substr(0, 4000 * 96)),
           "read", 1, 4000},
          {"too many tensors", many_tensors, "more than", 1, static_cast<i64>(many_tensors.size() / bytes_for_tensor)},
          {"deep", raw_file(R"({"w":)" + std::string(100'000, '['), ""), "a list where none is allowed"},
          {"a long name", raw_file("{\"" + std::string(60'000, 'n') + R"(":{"x":1}})", ""), "unknown field"}};
}

// A header with one text of metadata, and with what follows it.
std::string header_with_text(size_t length, const std::string& rest = "") {
  return R"({"__metadata__":{"a":")" + std::string(length, 'x') + "\"}" + rest + "}";
}

std::vector<FileCase> cases_of_texts() {
  const std::string elements(4'000'000, '\1'), long_part(120'000, 'x');
  const auto long_text = [&](size_t i) { return '"' + std::to_string(i) + "\":\"" + long_part + '"'; };
  const auto long_name = [&](size_t i) {
    return '"' + long_part + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  };
  const auto empty_text = [](size_t i) { return "\"" + std::to_string(i) + "\":\"\""; };
  const std::string million_numbers = R"(,"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]})";
  return {{"many keys", raw_file(R"({"__metadata__":{)" + comma_separated(20000, empty_text) + "}}", elements),
           "more than 256 keys of metadata"},
          {"a long text", raw_file(header_with_text(120'000), ""), "read"},
          {"a very long text", raw_file(header_with_text(1'000'000), ""), "too many for tensors of 0"},
          {"a long text and elements", raw_file(header_with_text(700'000, million_numbers), elements), "read"},
          {"many long texts", raw_file(R"({"__metadata__":{)" + comma_separated(16, long_text) + "}}", ""),
           "its names and texts have more than 131072 bytes"},
          {"many long names", raw_file("{" + comma_separated(16, long_name) + "}", ""),
           "its names and texts have more than 131072 bytes"},
          {"1,000 tensors and as much text as possible",
           raw_file("{" + tiny_tensors(1000) + R"(,"__metadata__":{"a":")" + std::string(100'000, 'x') + "\"}}", ""),
           "read"}};
}

// Reads the file in a program of its own, which says how much memory that took.
void check_memory_of(const FileCase& file, const std::string& path) {
  CAPTURE(file.name);
  set_contents(path, file.contents);
  const program::Result result = program::shell("'" ORRERY_SCARCE_MEMORY "' peak '" + path + "'");
  REQUIRE(result.exit_code == 0);
  std::istringstream line(result.text);
  i64 bytes = 0, peak = 0;
  std::string answer;
  line >> bytes >> peak;
  std::getline(line, answer);
  CAPTURE(peak);
  CHECK(bytes == static_cast<i64>(file.contents.size()));
  CHECK(program::contains(answer, file.answer));
  CHECK(peak > 0);
  const i64 more_tensors = std::max<i64>(0, file.tensors - static_cast<i64>(most_small_tensors));
  CHECK(peak <= file.times * bytes + (i64{1} << 20) + 1024 * more_tensors);
}

}  // namespace

TEST_CASE("promise 21: a file is read in its size and a megabyte; halves and many tensors take what is promised") {
  if (!small::counts_memory()) return;
  const TemporaryFolder folder;
  write_safetensors(folder / "model", {{"a", full({1000, 1000}, 1.0)}, {"b", full({700, 1000}, 1.0)}});
  for (const FileCase& file : cases_of_tensors(contents(folder / "model"))) check_memory_of(file, folder / "file");
  for (const FileCase& file : cases_of_texts()) check_memory_of(file, folder / "file");
}
