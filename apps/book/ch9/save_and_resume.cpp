// Chapter 9. A training that is stopped, saved and resumed gives the same bits as one that never stopped.
// Question: what has to be saved beside the parameters so that 20 + 20 steps are 40 steps?
// Answer: the optimiser's state, the step's number and the position of the random numbers. Without one, bits change.
#include <unistd.h>

#include <filesystem>
#include <iomanip>
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

nn::FeedForward new_network() {
  Rng weights(1);
  nn::FeedForward network(6, 24, weights, {.dropout = 0.1});
  nn::to(network, f64);
  return network;
}

// A network learns to turn rows round. Everything that its next step depends on is here.
struct Training {
  Rng data{9};
  nn::FeedForward model = new_network();
  optim::Adam adam{model.parameters()};
  i64 steps_done = 0;
  double step() {
    const Tensor x = randn({16, 6}, data, f64);
    nn::Pass pass = nn::Pass::training(9, ++steps_done);
    const Variable difference = model(constant(x), pass) - constant(flip(x, -1)), loss = mean(difference * difference);
    backward(loss);
    adam.step(optim::warmup_cosine(steps_done, 0.02, 10, 40));
    return loss.item();
  }
};

void save(Training& training, const std::string& path) {
  nn::save(training.model, path,
           {{"step", std::to_string(training.steps_done)}, {"data", std::to_string(training.data.position())}});
  write_safetensors(path + ".adam", training.adam.state());
}

enum Part { parameters, optimiser, step_number, random_numbers, everything_kept };

// Everything that was saved, but for one part.
void resume(Training& training, const std::string& path, Part forgotten) {
  if (forgotten != parameters) nn::load(training.model, path);
  const Metadata metadata = read_safetensors_metadata(path);
  if (forgotten != optimiser) training.adam.load_state(read_safetensors(path + ".adam").tensors);
  if (forgotten != step_number) training.steps_done = std::stoll(metadata.at("step"));
  if (forgotten != random_numbers) training.data = Rng(training.data.seed(), std::stoull(metadata.at("data")));
}

}  // namespace

int main() {
  const std::string path = std::filesystem::temp_directory_path() / ("orrery_ch9_resume_" + std::to_string(::getpid()));
  Training whole;
  double loss = 0;
  for (int i = 0; i < 40; ++i) {
    if (i == 20) save(whole, path);
    loss = whole.step();
  }
  std::cout << std::fixed << std::setprecision(4) << "loss of the last step\nnever stopped                      "
            << loss << '\n';
  bool as_expected = true;
  constexpr const char* names[] = {"without the parameters", "without Adam's state", "without the step's number",
                                   "without the position", "with everything"};
  for (const Part forgotten : {everything_kept, parameters, optimiser, step_number, random_numbers}) {
    Training second;
    resume(second, path, forgotten);
    for (int i = 0; i < 20; ++i) loss = second.step();
    const bool same = same_bits(second.model.linear1.weight.value(), whole.model.linear1.weight.value());
    std::cout << "resumed " << std::left << std::setw(27) << names[forgotten] << std::right << loss
              << (same ? "  the same bits" : "  other bits") << '\n';
    as_expected &= same == (forgotten == everything_kept);
  }
  for (const std::string& file : {path, path + ".adam"}) std::filesystem::remove(file);
  return as_expected ? 0 : 1;
}
