// Chapter 8. Trains and saves while each allocation fails in turn: a program for scarce_memory_test.cpp.
//
//   scarce_memory toy|lm|translate   every allocation of a step, a save and an evaluation fails (built with a
//                                    sanitizer, every eleventh): first alone, then together with all that follow it
//                                    ("for good")
//   scarce_memory peak FILE...       how much memory reading each file takes
// It prints a line for each. Its exit code is 1 if a failure changed what it must not change, or if memory leaked.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <new>

#include "apps/tasks/lm/training.h"
#include "apps/tasks/toy/training.h"
#include "apps/tasks/translate/model.h"
#include "apps/training/training_files.h"
#include "autograd/check/scheduling.h"
#include "core/machine/memory.h"
#include "nn/files/files.h"
#include "nn/files/gpt_files.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

// Memory that runs out: the N-th allocation fails, once or from then on. Allocations are those of operator new, which
// is replaced here, and of `allocate`, from which tensors have their elements: the linker puts `__wrap_...` in its
// place (tests/CMakeLists.txt).
namespace orrery::scarce {

// What all allocations of this program have come to.
struct Ledger {
  std::atomic<i64> until_failure{0};  // the allocation that fails, counted from 1; 0 or less: none
  std::atomic<bool> for_good{false};  // whether all later ones fail as well
  std::atomic<i64> failures{0};
  std::atomic<i64> blocks{0};                // allocated and not yet freed
  std::atomic<i64> bytes{0}, peak_bytes{0};  // of operator new; tensors are added to the peak
  std::atomic<bool> measures_peak{false};    // whether `peak_bytes` is kept up to date
};
inline Ledger ledger;

// Throws if this allocation is one that fails.
inline void count_allocation() {
  const i64 left = ledger.until_failure.load();
  if (left > 0) ledger.until_failure = left - 1;
  const bool strikes = left == 1 || (ledger.for_good && left == 0 && ledger.failures > 0);
  if (!strikes) return;
  ++ledger.failures;
  throw std::bad_alloc();
}

inline void note_peak() {
  const i64 now = ledger.bytes + memory_counters().live_bytes;
  if (now > ledger.peak_bytes) ledger.peak_bytes = now;
}

inline void* noted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++ledger.blocks;
  ledger.bytes += static_cast<i64>(malloc_usable_size(memory));
  if (ledger.measures_peak) note_peak();
  return memory;
}

inline void forget(void* memory) noexcept {
  if (memory == nullptr) return;
  --ledger.blocks;
  ledger.bytes -= static_cast<i64>(malloc_usable_size(memory));
  std::free(memory);
}

// Calls `attempt` with its first allocation failing, then the one `stride` later, and so on until it has no more.
// after_failure(thrown) is called each time, when memory is there again; `thrown` is false if the attempt came through
// all the same. Returns the number of failures.
template <class Attempt, class AfterFailure>
i64 fail_each(bool for_good, i64 stride, const Attempt& attempt, const AfterFailure& after_failure) {
  for (i64 n = 1, failed = 0;; n += stride, ++failed) {
    ledger.failures = 0;
    ledger.for_good = for_good;
    ledger.until_failure = n;
    const bool thrown = attempt();
    ledger.until_failure = 0;
    ledger.for_good = false;
    if (ledger.failures == 0) return failed;
    after_failure(thrown);
  }
}

}  // namespace orrery::scarce

// The other forms of operator new and delete call these. AddressSanitizer brings its own form with std::nothrow, so
// that form is replaced as well.
void* operator new(std::size_t bytes) {
  orrery::scarce::count_allocation();
  return orrery::scarce::noted(std::malloc(std::max<std::size_t>(bytes, 1)));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  orrery::scarce::count_allocation();
  const std::size_t unit = static_cast<std::size_t>(alignment);
  return orrery::scarce::noted(std::aligned_alloc(unit, (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) { return nullptr; }
}
void operator delete(void* memory) noexcept { orrery::scarce::forget(memory); }
void operator delete(void* memory, std::size_t) noexcept { orrery::scarce::forget(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { orrery::scarce::forget(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { orrery::scarce::forget(memory); }

// orrery::allocate and orrery::deallocate, by the names that the linker knows.
extern "C" void* __real__ZN6orrery8allocateEm(std::size_t bytes);
extern "C" void __real__ZN6orrery10deallocateEPv(void* memory) noexcept;
extern "C" void* __wrap__ZN6orrery8allocateEm(std::size_t bytes) {
  orrery::scarce::count_allocation();
  void* memory = __real__ZN6orrery8allocateEm(bytes);
  ++orrery::scarce::ledger.blocks;
  if (orrery::scarce::ledger.measures_peak) orrery::scarce::note_peak();
  return memory;
}
extern "C" void __wrap__ZN6orrery10deallocateEPv(void* memory) noexcept {
  if (memory != nullptr) --orrery::scarce::ledger.blocks;
  __real__ZN6orrery10deallocateEPv(memory);
}

using namespace orrery;

namespace {

// A training of any kind.
struct Training {
  std::unique_ptr<Task> task;
  std::unique_ptr<Trainer> trainer;
  std::function<void(const std::string& path)> save;
};

// Common to all: several micro-batches, clipping and evaluations. Each training adds one of the two averages of
// parameters.
void use_everything(TrainingRecipe& recipe) {
  recipe.steps = 200;
  recipe.micro_batches = 2;
  recipe.clip = 0.5;
  recipe.warmup = 2;
  recipe.evaluate_every = 5;
}

// Each recipe lives as long as `save`.
Training toy() {
  const auto kept = std::make_shared<ToyRecipe>();
  ToyRecipe& recipe = *kept;
  use_everything(recipe);
  recipe.average_last = 2;
  recipe.model.layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0.1};
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 1;
  recipe.task.min_length = 2;
  recipe.task.max_length = 4;
  recipe.task.symbols = 5;
  recipe.batch = 3;
  auto task = std::make_unique<ToyTrainingTask>(recipe);
  auto& model = task->model;
  auto trainer = std::make_unique<Trainer>(*task);
  return {std::move(task), std::move(trainer),
          [&model, kept](const std::string& path) { nn::save(model, path, metadata_of(model, kept->task)); }};
}

// Its text has so few blocks that an epoch ends within a step.
Training lm() {
  const auto kept = std::make_shared<LmRecipe>();
  LmRecipe& recipe = *kept;
  use_everything(recipe);
  recipe.optimizer = OptimizerKind::muon;
  recipe.average = 0.9;
  recipe.model.layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0.1};
  recipe.model.num_layers = 1;
  recipe.model.max_len = 6;
  recipe.model.rotary = recipe.model.query_key_norm = true;
  recipe.batch = 3;
  recipe.estimate_batches = 2;
  std::string text;
  for (int i = 0; i < 80; ++i) text += static_cast<char>('a' + i * i % 7);
  auto task = std::make_unique<LmTask>(recipe, text_data(text, recipe.model.max_len));
  auto& model = task->model;
  auto trainer = std::make_unique<Trainer>(*task);
  return {std::move(task), std::move(trainer), [&model, kept](const std::string& path) { nn::save(model, path); }};
}

// Its text lives as long as `save`, which has the vocabulary from it.
Training translator() {
  const auto kept = std::make_shared<translate::TranslationRecipe>(small::small_translation_recipe());
  translate::TranslationRecipe& recipe = *kept;
  use_everything(recipe);
  recipe.model.layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0.1};
  const auto data = std::make_shared<const translate::TranslationData>(small::animal_data(recipe));
  auto task = std::make_unique<translate::TranslationTask>(recipe, *data);
  auto& model = task->model();
  auto trainer = std::make_unique<Trainer>(*task);
  return {std::move(task), std::move(trainer),
          [&model, data, kept](const std::string& path) { save_translator(model, data->vocabulary, path); }};
}

// Whether it threw std::bad_alloc or an Error, of whatever cause. Any other exception ends the program.
template <class Work> bool throws(const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) { return true; } catch (const Error&) {
    return true;
  }
  return false;
}

i64 wrong = 0;
void expect(bool right, const std::string& what) {
  if (!right && ++wrong <= 10) std::cout << "WRONG: " << what << '\n';
}

constexpr i64 first_run = 97;  // its stride: what it finds is not reported

void report(const std::string& what, bool for_good, i64 failures, i64 stride) {
  if (stride != first_run) std::cout << what << (for_good ? ", for good: " : ", once: ") << failures << " failures\n";
}

// A step that fails leaves the training as it was, and the same step can be made afterwards.
void fail_steps(const std::string& name, Training& t, bool for_good, i64 stride) {
  Trainer& trainer = *t.trainer;
  std::string before = trainer.hash();
  const i64 failures = scarce::fail_each(
      for_good, stride, [&] { return throws([&] { trainer.step(); }); },
      [&](bool thrown) {
        const std::string after = trainer.hash();
        expect((after == before) == thrown,
               name + ": a step that failed moved something, or one that came through did not");
        before = after;
      });
  report(name + " step", for_good, failures, stride);
}

// A validation that fails leaves the training as it was.
void fail_evaluations(const std::string& name, Training& t, bool for_good, i64 stride) {
  Trainer& trainer = *t.trainer;
  const std::string before = trainer.hash();
  const i64 failures = scarce::fail_each(
      for_good, stride, [&] { return throws([&] { trainer.evaluate(); }); },
      [&](bool thrown) {
        expect(thrown && trainer.hash() == before, name + ": an evaluation that failed moved something");
      });
  report(name + " evaluation", for_good, failures, stride);
}

// A save that fails leaves either the old file or the new one, and nothing beside it; and the training as it was.
void fail_saves(const std::string& name, Training& t, const std::string& folder, bool for_good, i64 stride) {
  const std::string path = folder + "/m", reference = folder + "/reference";
  TrainingFiles files("scarce", path), reference_files("scarce", reference);
  const SavedParts parts{.save_model = t.save, .origin = {{"kind", name}}};
  files.begin(true);
  expect(files.keep(*t.trainer, parts), "the first save failed: " + files.problem());
  const std::string old_model = contents(path), old_state = contents(files.resume());
  t.trainer->step();
  expect(reference_files.keep(*t.trainer, parts), "the reference could not be saved");
  const std::string new_model = contents(reference), new_state = contents(reference_files.resume());
  expect(old_model != new_model && old_state != new_state, "a step changed nothing");
  const std::string before = t.trainer->hash();
  const i64 failures = scarce::fail_each(
      for_good, stride,
      [&] {
        bool kept = true;
        const bool thrown = throws([&] { kept = files.keep(*t.trainer, parts); });
        return thrown || !kept;
      },
      [&](bool failed) {
        const std::string model = contents(path), state = contents(files.resume());
        expect(model == old_model || model == new_model, name + ": a save that failed left a model that is neither");
        expect(state == old_state || state == new_state, name + ": a save that failed left a state that is neither");
        expect(failed || (model == new_model && state == new_state), name + ": a save failed in silence");
        expect(!std::filesystem::exists(path + ".tmp") && !std::filesystem::exists(files.resume() + ".tmp"),
               name + ": a save that failed left a temporary file");
        expect(t.trainer->hash() == before, name + ": a save that failed moved something");
        set_contents(path, old_model);
        set_contents(files.resume(), old_state);
      });
  expect(contents(path) == new_model && contents(files.resume()) == new_state, name + ": the last save is another");
  report(name + " save", for_good, failures, stride);
}

// Everything, in a training that must end with the bits of one that was never short of memory.
void run(const std::string& name, const std::function<Training()>& make, i64 stride) {
  const TemporaryFolder files;
  const std::string folder = files.path().string();
  Training t = make();
  for (int i = 0; i < 2; ++i) t.trainer->step();
  for (const bool for_good : {false, true}) fail_steps(name, t, for_good, stride);
  for (const bool for_good : {false, true}) fail_saves(name, t, folder, for_good, stride);
  const i64 evaluated = t.trainer->steps_done();
  for (const bool for_good : {false, true}) fail_evaluations(name, t, for_good, stride);
  for (int i = 0; i < 2; ++i) t.trainer->step();
  const Training calm = make();
  while (calm.trainer->steps_done() < evaluated) calm.trainer->step();
  const double first = calm.trainer->evaluate()[0].value, second = calm.trainer->evaluate()[0].value;
  while (calm.trainer->steps_done() < t.trainer->steps_done()) calm.trainer->step();
  expect(t.trainer->hash() == calm.trainer->hash(), name + ": the training went on with other bits");
  expect(t.trainer->best_score() == std::min(first, second), name + ": an evaluation gave another loss");
}

// Of how many allocations one fails. A sanitizer slows each failure down, and looks at what happens, not at each place.
#ifdef ORRERY_SANITIZED
constexpr i64 every = 11;
#else
constexpr i64 every = 1;
#endif

int run_all(const std::string& name, const std::function<Training()>& make) {
  set_threads(2);
  const SleepingThreads exact;
  const GrainScope grain(64);  // so that small tensors have parallel loops, too
  run(name, make, first_run);  // allocates what stays for good
  const i64 blocks = scarce::ledger.blocks;
  run(name, make, every);
  const i64 left = scarce::ledger.blocks - blocks;
  std::cout << name << ": " << wrong << " wrong, " << left << " blocks left" << std::endl;
  return wrong == 0 && left == 0 ? 0 : 1;
}

// The peak of all memory while a file is read, beyond what there was before; and what is wrong with the file.
int measure(int count, char** paths) {
  if (!small::counts_memory()) return 0;
  scarce::ledger.measures_peak = true;
  for (int i = 0; i < count; ++i) {
    const std::string path = paths[i];
    std::string problem;
    const i64 before = scarce::ledger.bytes + memory_counters().live_bytes;
    scarce::ledger.peak_bytes = before;
    problem = small::error_of([&] { read_safetensors(path); });
    const i64 peak = scarce::ledger.peak_bytes - before;
    std::cout << std::filesystem::file_size(path) << ' ' << peak << ' ' << (problem.empty() ? "read" : problem) << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "toy") return run_all("toy", toy);
  if (what == "lm") return run_all("lm", lm);
  if (what == "translate") return run_all("translate", translator);
  if (what == "peak") return measure(argc - 2, argv + 2);
  std::cerr << "usage: scarce_memory toy|lm|translate, or scarce_memory peak FILE...\n";
  return 2;
}
