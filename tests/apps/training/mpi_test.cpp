// Chapter 9. Tests of ranks that are processes of mpirun: equal bits, resuming, what is refused, and how they end.
#include <filesystem>
#include <regex>

#include "apps/training/ranks.h"
#include "tests/apps/run_program.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;
using orrery::contents;
using orrery::set_contents;
using orrery::TemporaryFolder;

namespace {

bool mpi_is_there() {
  using namespace orrery::tools;
  return is_there(orrery::has_mpi(), "a build with MPI") && are_there({"mpirun"});
}

// As many processes of the program as machines have no cores for, also as root, in a container.
std::string mpirun(const std::string& options) {
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
         "timeout 100 mpirun --oversubscribe " +
         options;
}
std::string ranks(int count, const std::string& arguments) {
  return mpirun("-np " + std::to_string(count) + " " + quoted_program + arguments + " --ranks --threads 1 ");
}

const std::string toy = "toy --steps 20 --evaluate-every 5 --micro-batches 4 --hash " + small_toy_options;

// Starts `command` in the background; when `model` has a state to resume, runs `then`, in which $PIDS are the ranks.
Result when_saved(const std::string& command, const std::string& model, const std::string& then) {
  return shell(command + " >'" + model + ".out' 2>&1 & until [ -e '" + model +
               ".resume' ]; do kill -0 $! || break; sleep 0.01; done; P=$!; "
               "M=$(pgrep -P $P -x mpirun); PIDS=$(pgrep -P $M); set -- $PIDS; " +
               then + "; wait $P; echo $?");
}

// The lines of the evaluations.
std::vector<std::string> judgements(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  const std::regex of_step("step [0-9]+: .*[0-9].*");
  for (std::string line; std::getline(all, line);)
    if (std::regex_match(line, of_step)) lines.push_back(line);
  return lines;
}

// Waits until mpirun, process $M, has ended; says "alive" if that takes longer than ten seconds.
const std::string ends_soon =
    "; for i in $(seq 100); do kill -0 $M 2>/dev/null || break; sleep 0.1; done; "
    "kill -0 $M 2>/dev/null && echo alive && kill -KILL $M";

}  // namespace

TEST_CASE("without MPI, --ranks names the packages to install") {
  if (orrery::has_mpi()) return;
  check_failure(quoted_program + toy + "--ranks", "apt-get install libopenmpi-dev openmpi-bin");
}

TEST_CASE("a training has the same bits on 1, 2, 3 and 4 ranks, and a line of each kind once") {
  if (!mpi_is_there()) return;
  const std::string expected = trained_hash(toy + "--threads 1");
  for (const int count : {1, 2, 3, 4}) {
    CAPTURE(count);
    const Result result = shell(ranks(count, toy) + "2>&1");
    CHECK(result.exit_code == 0);
    CHECK(hash_in(result.text) == expected);
    CHECK(times(result.text, "\nstep 20/20  loss ") == 1);
    CHECK(times(result.text, "exact match ") == 1);
    CHECK(times(result.text, "step 5: validation loss ") == 1);
    CHECK(contains(result.text, std::to_string(count) + " ranks, 4 micro-batches in a step: ") == (count > 1));
  }
  const Result fast = shell(ranks(2, toy + " --sum fast") + "2>&1");
  CHECK(fast.exit_code == 0);
  CHECK(contains(fast.text, "2 ranks, 4 micro-batches in a step\n"));
}

TEST_CASE("other tasks have the same bits and scores on 1 to 8 ranks, of which each has a batch at least") {
  if (!mpi_is_there()) return;
  const TemporaryFolder folder;
  const orrery::small::AnimalText animals = orrery::small::animal_text();
  const std::string text = written(folder / "text", repeated("the dog sees the cat, and the cat sees the dog. ", 60)),
                    english = written(folder / "en", animals.english), german = written(folder / "de", animals.german),
                    table =
                        written(folder / "table.tsv", "text\tlabel\n" + repeated("a cow\t0\na tram\t1\na\t0\n", 80)),
                    bert =
                        "--vocab-size 40 --layers 1 --heads 2 --d-model 8 --d-ff 8 --batch 2 --steps 4 "
                        "--evaluate-every 2 --valid '";
  for (const std::string& training :
       {"lm train '" + text + "' " + quick_lm + "--dropout 0.1 --hash ",
        "translate train --source '" + english + "' --target '" + german +
            "' --segmented --d-model 8 --heads 2 --d-ff 8 --encoder-layers 1 --decoder-layers 1 --batch-tokens 40 "
            "--warmup 2 --max-tokens 20 --steps 4 --evaluate-every 2 --hash ",
        "classify train '" + table + "' " + bert + table + "' --hash ",
        "pretrain train '" + text + "' " + bert + text + "' --hash "}) {
    CAPTURE(training);
    const Result one = run(training + "--micro-batches 8 --threads 1", "2>&1");
    CHECK(hash_in(one.text) != "");
    CHECK(judgements(one.text).size() == 2);
    for (const int count : {2, 3, 8}) {
      const Result result = shell(ranks(count, training + (count < 8 ? "--micro-batches 8" : "")) + "2>&1");
      CHECK(hash_in(result.text) == hash_in(one.text));
      CHECK(judgements(result.text) == judgements(one.text));
    }
  }
}

TEST_CASE("slow: a training that is stopped by Ctrl-C, on one rank or on mpirun, is saved; other ranks have its bits") {
  if (!mpi_is_there()) return;
  const TemporaryFolder folder;
  const std::string file = folder / "long";
  when_saved(ranks(2, "toy --steps 1000000 --evaluate-every 40 " + small_toy_options + "--save '" + file + "' "), file,
             "kill -INT $M");
  CHECK(contains(contents(file + ".out"), "to resume: orrery toy --resume "));
  const std::string recipe = "toy --steps 1000 --evaluate-every 40 --micro-batches 4 --hash " + small_toy_options,
                    expected = trained_hash(recipe + "--threads 1");
  for (const auto& sizes : {std::pair{3, 1}, {1, 4}}) {
    const std::string model = folder / std::to_string(sizes.first), save = "--save '" + model + "' ";
    when_saved(ranks(sizes.first, recipe + save), model, "kill -INT $1");
    const std::string text = contents(model + ".out");
    CAPTURE(text);
    CHECK(times(text, "finishing what is begun") == 1);
    CHECK(contains(text, "to resume: orrery toy --resume "));
    CHECK(hash_in(shell(ranks(sizes.second, "toy --hash --resume '" + model + "'") + "2>/dev/null").text) == expected);
  }
}

TEST_CASE("ranks that differ in options or in their program are refused, with the rank and the difference") {
  if (!mpi_is_there()) return;
  const TemporaryFolder folder;
  const std::string other = folder / "other", one = "-np 1 " + quoted_program + toy + "--ranks ";
  Result result = shell(mpirun(one + ": " + one + "--seed 7 ") + "2>&1");
  CHECK(result.exit_code == 1);
  CHECK(std::regex_search(result.text, std::regex("orrery: toy: rank 1 on \\S+ differs from rank 0 on \\S+ in "
                                                  "--seed: 7 instead of 1\n")));
  result = shell(mpirun(one + ": " + one + "--sum fast ") + "2>&1");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, " in --sum: fast instead of exact"));
  std::filesystem::copy_file(ORRERY_PROGRAM, other);
  set_contents(other, contents(other) + "x");
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  const std::string mixed = one + ": -np 1 '" + other + "' " + toy + "--ranks ";
  result = shell(mpirun(mixed) + "2>&1");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, " in program: "));
  CHECK(contains(result.text, "so their bits would differ (--sum fast allows that)"));
  result = shell(mpirun(one + "--sum fast : -np 1 '" + other + "' " + toy + "--ranks --sum fast ") + "2>&1");
  CHECK(result.exit_code == 0);
  CHECK(contains(result.text, "warning: rank 1 on "));
}

TEST_CASE("what is wrong on all ranks, or with the files of rank 0, is said once") {
  if (!mpi_is_there()) return;
  const TemporaryFolder folder;
  const std::string text = written(folder / "text", "no model");
  for (const auto& wrong :
       {std::pair<std::string, std::string>{"--save '" + text + "'", "holds no model; name another, or remove it"},
        {"--micro-batches 1", "toy: --micro-batches must be at least 2, one for each rank, not 1"}}) {
    const Result result = shell(ranks(2, quick_toy + wrong.first) + "2>&1");
    CHECK(result.exit_code == 1);
    CHECK(times(result.text, "orrery: ") == 1);
    CHECK(contains(result.text, wrong.second));
  }
}

TEST_CASE("slow: a rank that is killed or stopped ends all within ten seconds, and the last saved state goes on") {
  if (!mpi_is_there()) return;
  const std::string recipe = "toy --steps 1000 --evaluate-every 20 --micro-batches 3 --hash " + small_toy_options,
                    expected = trained_hash(recipe + "--threads 1");
  for (const std::string signal : {"KILL", "STOP"})
    for (const std::string rank : {"1", "2", "3"}) {
      CAPTURE(signal);
      CAPTURE(rank);
      const TemporaryFolder folder;
      const std::string model = folder / "model";
      const Result result =
          when_saved(ranks(3, recipe + "--save '" + model + "' "), model, "kill -" + signal + " $" + rank + ends_soon);
      CHECK_FALSE(contains(result.text, "alive"));
      const std::string text = contents(model + ".out");
      CAPTURE(text);
      const std::string killed = "process rank [0-2] with PID", stopped = "orrery: rank [0-2] on \\S+ has not answered";
      CHECK(std::regex_search(text, std::regex(signal == "KILL" ? killed : stopped)));
      CHECK(trained_hash("toy --hash --threads 1 --resume '" + model + "'") == expected);
    }
}

// Thirty times, or as often as ORRERY_KILLS says.
TEST_CASE("long: a training whose ranks were killed again and again ends with the bits of an undisturbed one") {
  if (!mpi_is_there()) return;
  const char* asked = std::getenv("ORRERY_KILLS");
  const int most = asked ? std::stoi(asked) : 30;
  const TemporaryFolder folder;
  const std::string model = folder / "model", resume = "toy --hash --resume '" + model + "' ",
                    recipe = "toy --steps " + std::to_string(2000 * most) +
                             " --evaluate-every 20 --micro-batches 5 --hash " + small_toy_options;
  orrery::Rng numbers(1);
  for (int kills = 0; kills < most; ++kills) {
    const orrery::i64 count = numbers.integer(2, 6), killed = numbers.integer(0, count);
    const bool was_saved = std::filesystem::exists(model + ".resume");
    const Result result =
        shell(ranks(static_cast<int>(count), was_saved ? resume : recipe + "--save '" + model + "' ") + ">'" + model +
              ".out' 2>&1 & P=$!; sleep " + std::to_string(0.7 + 2 * numbers.uniform()) +
              "; M=$(pgrep -P $P -x mpirun); set -- $(pgrep -P $M); kill -KILL $" + std::to_string(killed + 1) +
              ends_soon + "; wait $P");
    const std::string text = contents(model + ".out");
    CAPTURE(text);
    CHECK_FALSE(contains(result.text, "alive"));
    CHECK(times(text, "process rank " + std::to_string(killed) + " with PID") == 1);
  }
  CHECK(trained_hash(resume + "--threads 1") == trained_hash(recipe + "--threads 1"));
}

TEST_CASE("bench ranks foretells what as many ranks take as there are, and needs two") {
  if (!mpi_is_there()) return;
  const std::string bench = quoted_program + "bench ranks --config toy --steps 1 ";
  const Result result = shell(mpirun("-np 3 " + bench) + "2>/dev/null");
  CHECK(result.exit_code == 0);
  CHECK(times(result.text, "2 ranks   fitted  3 ranks  foretold") == 1);
  CHECK(times(result.text, "\ntoy ") == 2);
  CHECK(contains(result.text, "of two ranks: latency "));
  check_failure(bench, "bench ranks: needs at least two ranks: mpirun -np 2 orrery bench ranks");
}
