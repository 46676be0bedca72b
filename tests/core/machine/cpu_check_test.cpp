// Chapter 8. Tests of the comparison that runs before all else, with CPUs made up, and of the list of CPU features.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/machine/cpu_features.h"
#include "tests/apps/run_program.h"

using namespace orrery;

namespace {

constexpr CpuFeature made_up[] = {{"A", true, CpuAnswers::leaf1_ecx, 3, 0},
                                  {"B", false, CpuAnswers::leaf7_ebx, 5, 0},
                                  {"C", true, CpuAnswers::leaf7_ebx, 31, 0x6},
                                  {"D", true, CpuAnswers::extended_ecx, 0, 0}};

std::string said(const CpuAnswers& cpu, size_t size = 1024) {
  std::string message(size, '\0');
  message.resize(lacking_features(made_up, 4, cpu, message.data(), size));
  return message;
}

// A CPU with all that is needed, and nothing else.
CpuAnswers fitting() {
  CpuAnswers cpu{};
  cpu.words[CpuAnswers::leaf1_ecx] = 1u << 3;
  cpu.words[CpuAnswers::leaf7_ebx] = 1u << 31;
  cpu.words[CpuAnswers::extended_ecx] = 1;
  cpu.saved_registers = 0x7;
  return cpu;
}

}  // namespace

TEST_CASE("a CPU that has what is needed runs, whatever else it lacks") { CHECK(said(fitting()) == ""); }

TEST_CASE("what a CPU lacks is named, with how to build for it, in one line") {
  const std::string begin = "orrery: this program was built for a CPU that has ",
                    end =
                        "; this one has not. Remove the build folder and build on this machine, or configure with "
                        "-D ORRERY_NATIVE=OFF for any CPU\n";
  CpuAnswers cpu = fitting();
  cpu.words[CpuAnswers::leaf7_ebx] = ~(1u << 31);
  CHECK(said(cpu) == begin + "C" + end);
  CHECK(said({}) == begin + "A, C, D" + end);
}

TEST_CASE("a feature whose registers the operating system does not keep is lacking") {
  CpuAnswers cpu = fitting();
  for (const unsigned kept : {0u, 0x2u, 0x4u, 0xE1u}) {
    cpu.saved_registers = kept;
    CHECK(said(cpu).find("has C;") != std::string::npos);
  }
}

TEST_CASE("a message that is too long is cut") {
  CHECK(said({}, 20).size() == 20);
  CHECK(said({}, 20) == said({}).substr(0, 20));
}

#if defined(__x86_64__)
TEST_CASE("the check stands in every program that uses the library, and is compiled for every x86-64") {
  for (const std::string executable : {ORRERY_PROGRAM, ORRERY_PLAIN_USER}) {
    CAPTURE(executable);
    CHECK(program::shell("nm -C '" + executable + "' | grep -c ' check_cpu()$'").text == "1\n");
  }
  std::ifstream file(ORRERY_COMPILE_COMMANDS);
  std::string command;
  for (const auto& entry : nlohmann::json::parse(file))
    if (entry.at("file").get<std::string>().ends_with("core/machine/cpu_check.cpp")) command = entry.at("command");
  REQUIRE(command != "");
  // The last one counts.
  const std::string last = command.substr(std::min(command.rfind(" -march="), command.size()));
  CHECK(last.starts_with(" -march=x86-64 "));
  CHECK(command.find(" -include ") == std::string::npos);  // precompiled headers are those of another CPU
}

// Under a sanitizer the program needs more addresses than qemu has.
#if defined(__AVX__) && !defined(ORRERY_SANITIZED)
TEST_CASE("on a CPU without AVX a program built for AVX says so and ends with 1") {
  if (!tools::are_there({"qemu-x86_64"})) return;
  for (const std::string executable : {"'" ORRERY_PROGRAM "' --version", "'" ORRERY_PLAIN_USER "'"}) {
    CAPTURE(executable);
    const program::Result result = program::shell("timeout 60 qemu-x86_64 -cpu Nehalem " + executable + " 2>&1");
    CHECK(result.exit_code == 1);
    CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 1);
    CHECK(result.text.starts_with("orrery: this program was built for a CPU that has "));
    CHECK(program::contains(result.text, "AVX"));
  }
}
#endif
#endif

namespace {

std::span<const CpuFeature> features() { return {cpu_features, cpu_feature_count}; }

const CpuFeature& feature(std::string_view name) {
  const auto found = std::find_if(features().begin(), features().end(), [&](const auto& f) { return f.name == name; });
  REQUIRE(found != features().end());
  return *found;
}

}  // namespace

TEST_CASE("the CPU that runs this build has what it was built for") {
  char message[1024];
  CHECK(lacking_features(cpu_features, cpu_feature_count, cpu_answers(), message, sizeof message) == 0);
}

// These tests are compiled for the same CPU as the library.
TEST_CASE("the list knows what the compiler was told") {
#ifdef __SSE4_2__
  CHECK(feature("SSE4.2").needed);
#else
  CHECK_FALSE(feature("SSE4.2").needed);
#endif
#ifdef __AVX2__
  CHECK(feature("AVX2").needed);
#else
  CHECK_FALSE(feature("AVX2").needed);
#endif
#ifdef __AVX512F__
  CHECK(feature("AVX512F").needed);
#else
  CHECK_FALSE(feature("AVX512F").needed);
#endif
}

#if defined(__x86_64__)
TEST_CASE("CPUID is read as the compiler reads it") {
  const CpuAnswers cpu = cpu_answers();
  const auto has = [&](std::string_view name) {
    const CpuFeature& f = feature(name);
    return (cpu.words[f.word] >> f.bit & 1) != 0 && (cpu.saved_registers & f.registers) == f.registers;
  };
  CHECK(has("SSE3") == (__builtin_cpu_supports("sse3") != 0));
  CHECK(has("POPCNT") == (__builtin_cpu_supports("popcnt") != 0));
  CHECK(has("BMI2") == (__builtin_cpu_supports("bmi2") != 0));
  CHECK(has("AVX") == (__builtin_cpu_supports("avx") != 0));
  CHECK(has("FMA") == (__builtin_cpu_supports("fma") != 0));
  CHECK(has("AVX2") == (__builtin_cpu_supports("avx2") != 0));
  CHECK(has("AVX512F") == (__builtin_cpu_supports("avx512f") != 0));
  CHECK(has("AVX512VL") == (__builtin_cpu_supports("avx512vl") != 0));
  CHECK(has("AVX512VBMI") == (__builtin_cpu_supports("avx512vbmi") != 0));
}
#endif

TEST_CASE("no feature stands in the list twice, by name or by place") {
  std::set<std::string_view> names;
  std::set<std::pair<int, unsigned>> places;
  for (const CpuFeature& f : features()) {
    CAPTURE(f.name);
    CHECK(names.insert(f.name).second);
    CHECK(places.insert({f.word, f.bit}).second);
    CHECK(f.bit < 32);
  }
}
