// Chapter 9. Tests of what a run knows of the machine, and of its first lines.
#include "apps/program/machine.h"

#include <doctest/doctest.h>

#include <sstream>

#include "core/machine/parallel.h"

using namespace orrery;

TEST_CASE("kernels of OpenBLAS are known by their vectors, whatever their spelling") {
  CHECK(kernel_vector_level("Haswell") == VectorLevel::avx2);
  CHECK(kernel_vector_level("sandybridge") == VectorLevel::avx);
  CHECK(kernel_vector_level("SKYLAKEX") == VectorLevel::avx512);
  CHECK(kernel_vector_level("Prescott") == VectorLevel::baseline);
  CHECK_FALSE(kernel_vector_level("neoversen1"));
  CHECK(same_word("PASSIVE", "passive"));
  CHECK_FALSE(same_word("passive", "passiv"));
}

TEST_CASE("what is read of this machine is plausible") {
  const Machine machine = read_machine();
  CHECK_FALSE(machine.cpu.empty());
  CHECK(machine.build.level <= machine.level);  // otherwise this program could not run
  CHECK(machine.build.optimisation.starts_with("-O"));
  CHECK(machine.cores >= 1);
  CHECK(machine.allowed >= 1);
  CHECK(machine.allowed <= machine.cores);
  CHECK(machine.granted >= 0);
  CHECK(machine.threads == threads());
  CHECK(machine.blas.kernel == blas_info().kernel);
  CHECK(machine.memory.total <= physical_memory());
  CHECK(machine.memory.available <= machine.memory.total);
  CHECK(watch_cores(machine.cores).busy <= machine.cores);
}

TEST_CASE("the first lines name seed, tiles, kernel, model and time") {
  std::ostringstream out;
  print_start(out, {.seed = 42, .parameters = 128013, .expected_seconds = 75});
  CHECK(out.str().starts_with("seed 42, "));
  CHECK(out.str().find(", products in at least 2 tiles, OpenBLAS ") != std::string::npos);
  CHECK(out.str().find("kernel " + blas_info().kernel + "\n") != std::string::npos);
  CHECK(out.str().find("model of 128013 parameters\n") != std::string::npos);
  CHECK(out.str().find("expected time 1 min 15 s\n") != std::string::npos);
  const auto time_with_limit = [](double minutes) {
    std::ostringstream text;
    print_start(text, {.expected_seconds = 75, .time_limit = minutes});
    const size_t begin = text.str().find("expected");
    return text.str().substr(begin, text.str().find('\n', begin) - begin);
  };
  CHECK(time_with_limit(0.5) == "expected time 1 min 15 s; --time-limit stops it after 30 s");
  CHECK(time_with_limit(2) == "expected time 1 min 15 s");
  CHECK(time_with_limit(0) == "expected time 1 min 15 s");
}

TEST_CASE("the first line names no seed if no random number is drawn") {
  std::ostringstream out;
  print_start(out, {.parameters = 3});
  CHECK(out.str().find("seed") == std::string::npos);
  CHECK(out.str().find(std::to_string(threads()) + " thread") == 0);
}
