// Chapter 9. Tests of the built program: exit codes, and one line for each mistake.
#include <unistd.h>

#include "core/machine/vector_level.h"
#include "tests/apps/run_program.h"
#include "tests/core/support.h"

using namespace orrery::program;

TEST_CASE("help and version need no memory for OpenBLAS; what needs it says so where addresses are too few") {
  if (!orrery::small::counts_memory()) return;  // AddressSanitizer takes more addresses than the limit
  const std::string limited = "ulimit -v 300000; timeout 60 " + quoted_program;
  for (const std::string text : {"--version", "--help", "lm train --help"}) {
    CHECK(shell(limited + text).exit_code == 0);
    CHECK(shell(limited + text).text == run(text).text);
  }
  const Result refused = shell(limited + "figure speed 2>&1");
  CHECK(refused.exit_code == 1);
  CHECK(refused.text.starts_with("orrery: ulimit -v allows 292 MB of addresses, and OpenBLAS needs "));
}

TEST_CASE("a native build names the CPU level that it was built for") {
  const std::string native =
      "native build, for CPUs with " + std::string(orrery::name_of(orrery::compiled_vector_level()));
  CHECK(contains(run("--version").text, native) == ORRERY_IS_NATIVE);
}

TEST_CASE("without a sub-command the program shows its help and says that this is wrong usage") {
  const Result result = errors("");
  CHECK(result.exit_code == 2);
  CHECK(contains(result.text, "Usage: orrery"));
}

TEST_CASE("help and version are results") {
  CHECK(run("--version").exit_code == 0);
  CHECK(run("--version").text.starts_with("orrery "));
  CHECK(run("--help").exit_code == 0);
  CHECK(contains(run("--help").text, "gradcheck"));
  CHECK(contains(run("--help").text, "\nThe book: apps/book/README.md. Its exercises: apps/run exercise.\n"));
}

TEST_CASE("a sub-command's help shows its defaults and an example") {
  const Result result = run("gradcheck --help");
  CHECK(result.exit_code == 0);
  CHECK(contains(result.text, "--seed NUMBER=1"));
  CHECK(contains(result.text, "Examples:\n  orrery gradcheck "));
}

TEST_CASE("each mistake on the command line is one line and exit code 2") {
  check_usage_error("nonsense", "'nonsense'", "there are: ");
  check_usage_error("--nonsense", "'--nonsense'", "orrery --help");
  check_usage_error("gradcheck --nonsense", "'--nonsense'", "orrery gradcheck --help");
  check_usage_error("toy --step 3", "'--step' (--steps?)", "see orrery toy --help");
  check_usage_error("toy nonsense", "unexpected argument 'nonsense'", "orrery toy --help");
  check_usage_error("gradcheck nonsense", "'nonsense'", "orrery gradcheck --list");
  check_usage_error("gradcheck softmax nonsense", "'nonsense'", "orrery gradcheck --list");
  check_usage_error("gradcheck --seed", "--seed", "NUMBER");
  check_usage_error("figure", "PICTURE is required; see orrery figure --help", "");
  check_usage_error("figure nope", "'nope'", "activations, attention, ");
  check_usage_error("lm sample", "--load is required; see orrery lm sample --help", "");
  check_usage_error("gradcheck --threads two", "--threads: 'two'", "from 1 to 256");
  check_usage_error("gradcheck --seed=1 --seed=2", "--seed", "At Most 1");
  check_usage_error("translate train --smoothing 1", "--smoothing", "from 0 to 0.999999");
  check_usage_error("toy --time-limit -1", "--time-limit: '-1'", "a number from 0 to 1000000\n");
}

TEST_CASE("whole numbers are written in one way and stay in their range") {
  for (const std::string wrong :
       {"0", "257", "-1", "1.0", "1e1", "0x1", "01", "+1", "''", "' 1'", "99999999999999999999"})
    check_usage_error("gradcheck --threads=" + wrong, "--threads", wrong == "''" ? "" : "from 1 to 256");
}

TEST_CASE("gradcheck --list names every sample and its variant, and checks none") {
  const Result all = run("gradcheck --list");
  CHECK(all.exit_code == 0);
  CHECK(contains(all.text, "softmax "));
  CHECK(contains(all.text, "nn/"));
  CHECK_FALSE(contains(all.text, "checked"));
  const Result layers = run("gradcheck --list 'nn/*'");
  CHECK_FALSE(contains(layers.text, "\nsoftmax "));
  CHECK(layers.text.size() < all.text.size());
}

TEST_CASE("gradcheck softmax ends with its count, in a table of at most 100 columns") {
  const Result result = run("gradcheck softmax");
  CHECK(result.exit_code == 0);
  CHECK(result.text.ends_with(" checked, 0 failed\n"));
  CHECK_FALSE(result.text.ends_with("\n0 checked, 0 failed\n"));
  for (size_t begin = 0; begin < result.text.size();) {
    const size_t end = result.text.find('\n', begin);
    CHECK(end - begin <= 100);
    begin = end + 1;
  }
}

TEST_CASE("the run says its seed, threads and tiles on stderr, where no colours and no redrawing go into a pipe") {
  const Result result = errors("gradcheck softmax --seed 7 --threads 1");
  CHECK(result.text.starts_with("seed 7, 1 thread, products in at least 2 tiles, OpenBLAS "));
  CHECK_FALSE(contains(result.text, "\033"));
  CHECK_FALSE(contains(result.text, "\r"));
}

TEST_CASE("results that cannot be written are a failure") {
  for (const std::string command : {"gradcheck --list", "gradcheck --help", "--version"}) {
    const Result result = run(command, "2>&1 >/dev/full");
    CHECK(result.exit_code == 1);
    CHECK(result.text == "orrery: cannot write the results to standard output\n");
  }
}

TEST_CASE("a reader that went away (orrery ... | head) is not a failure") {
  int ends[2];
  constexpr int unused_descriptor = 9;
  REQUIRE(pipe(ends) == 0);
  REQUIRE(dup2(ends[1], unused_descriptor) == unused_descriptor);
  close(ends[0]);
  close(ends[1]);
  const Result result = run("gradcheck --list", "2>&1 >&9");
  close(unused_descriptor);
  CHECK(result.exit_code == 0);
  CHECK(result.text.empty());
}
