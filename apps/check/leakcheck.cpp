// Chapter 9. `orrery leakcheck`: shows that the outputs of a model depend only on inputs they may depend on.
//
// It prints a matrix for each model and each pair of input and output: which positions move which. In causal models
// each row of the batch must be a triangle. Padding must be empty columns, and other rows must be empty blocks. --break
// breaks a mask on purpose, to show how a leak is reported.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/tasks/lm/training.h"
#include "core/machine/parallel.h"
#include "nn/check/leakcheck_models.h"
#include "nn/files/files.h"
#include "nn/files/gpt_files.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

using nn::MaskFault;
using Checks = std::vector<nn::LeakCheck>;

struct LeakcheckOptions {
  std::vector<std::string> names;
  std::string load, fault = "none";
  bool list = false;
  i64 heads = 0, seed = 1, threads = 1;
};

// A model with its name, and with random weights.
struct BuiltIn {
  std::string name;
  Checks (*checks)(Rng& rng, MaskFault fault);
  bool has_padding = true, has_causal = true;
};

constexpr i64 d_model = 16;
constexpr nn::LayerOptions layer{.d_model = d_model, .num_heads = 2, .d_ff = 32};

// In f64, where even an influence of 1e-15 changes a bit.
template <class M> std::shared_ptr<M> exact(std::shared_ptr<M> model) {
  nn::to(*model, f64);
  return model;
}

Checks transformer(bool norm_first, Rng& rng, MaskFault fault, bool copy = false) {
  const nn::TransformerConfig config{
      .src_vocab_size = 13,
      .tgt_vocab_size = 13,
      .layer = {.d_model = d_model, .num_heads = 2, .d_ff = 32, .norm_first = norm_first},
      .num_encoder_layers = 2,
      .num_decoder_layers = 2,
      .final_norm = norm_first,
      .max_len = 16,
      .copy = copy};
  return nn::leakchecks(exact(std::make_shared<nn::Transformer>(config, rng)), fault);
}

Checks gpt(Rng& rng, MaskFault fault) {
  const LanguageModelConfig config{
      .vocab_size = 11, .layer = {.d_model = d_model, .num_heads = 2, .d_ff = 32}, .num_layers = 2, .max_len = 16};
  return nn::leakchecks(exact(std::make_shared<LanguageModel>(config, rng)), fault);
}

Checks bert(bool sentence_sums, Rng& rng, MaskFault fault) {
  const nn::BertConfig config{.vocab_size = 11,
                              .layer = {.d_model = d_model, .num_heads = 2, .d_ff = 32},
                              .num_layers = 2,
                              .max_positions = 16,
                              .type_vocab_size = sentence_sums ? 4 : 2,
                              .sentence_sums = sentence_sums};
  return nn::leakchecks(exact(std::make_shared<nn::Bert>(config, rng)), fault);
}

std::vector<BuiltIn> built_in_models() {
  return {{"encoder",
           [](Rng& rng, MaskFault fault) {
             return nn::leakchecks(exact(std::make_shared<nn::Encoder>(2, false, layer, rng)), d_model, fault);
           },
           true, false},
          {"decoder",
           [](Rng& rng, MaskFault fault) {
             return nn::leakchecks(exact(std::make_shared<nn::Decoder>(2, false, layer, rng)), d_model, fault);
           }},
          {"transformer", [](Rng& rng, MaskFault fault) { return transformer(false, rng, fault); }},
          {"transformer-pre-norm", [](Rng& rng, MaskFault fault) { return transformer(true, rng, fault); }},
          {"transformer-that-copies", [](Rng& rng, MaskFault fault) { return transformer(false, rng, fault, true); }},
          {"gpt", gpt, false},
          {"bert", [](Rng& rng, MaskFault fault) { return bert(false, rng, fault); }, true, false},
          {"bert-of-sentences", [](Rng& rng, MaskFault fault) { return bert(true, rng, fault); }, true, false},
          {"decoder-in-tiles", [](Rng& rng, MaskFault fault) {
             return nn::leakchecks_in_tiles(exact(std::make_shared<nn::Decoder>(1, false, layer, rng)), d_model, fault);
           }}};
}

MaskFault fault_of(const std::string& name) {
  if (name == "causal") return MaskFault::causal;
  if (name == "padding") return MaskFault::padding;
  if (name == "batch") return MaskFault::batch;
  return MaskFault::none;
}

Checks saved_model(const std::string& path, i64 heads, MaskFault fault) {
  const Metadata metadata = read_safetensors_metadata(path);
  const auto config = metadata.find(std::string(nn::config_key));
  const bool is_gpt =  // GPT-2's files have no configuration
      config == metadata.end() ||
      within("read " + path, [&] { return nn::config_json::describes<LanguageModelConfig>(config->second); });
  const auto checks_of = [&](auto model) {
    return within("check " + path, [&] { return nn::leakchecks(exact(model), fault); });
  };
  Checks checks;
  if (is_gpt) {
    checks = checks_of(std::make_shared<LanguageModel>(nn::load_gpt(path, heads)));
  } else {
    if (heads != 0) usage_error("--heads", "is for a GPT-2 of another program; " + path + " holds another model");
    if (nn::config_json::describes<nn::BertConfig>(config->second))
      checks = checks_of(std::make_shared<nn::Bert>(nn::load<nn::Bert>(path)));
    else if (nn::config_json::describes<nn::TransformerConfig>(config->second))
      checks = checks_of(std::make_shared<nn::Transformer>(nn::load<nn::Transformer>(path)));
    else
      fail("leakcheck --load", path, " holds no Transformer, GPT or BERT");
  }
  for (nn::LeakCheck& c : checks) c.name = path;
  return checks;
}

bool can_break(const BuiltIn& model, MaskFault fault) {
  if (fault == MaskFault::padding) return model.has_padding;
  if (fault == MaskFault::causal) return model.has_causal;
  return true;
}

Checks chosen_checks(const LeakcheckOptions& options) {
  const MaskFault fault = fault_of(options.fault);
  if (!options.load.empty()) return saved_model(options.load, options.heads, fault);
  Rng rng(static_cast<u64>(options.seed));
  Checks all;
  for (const BuiltIn& model : built_in_models()) {
    if (!matches_any(options.names, model.name) || !can_break(model, fault)) continue;
    for (nn::LeakCheck& c : model.checks(rng, fault)) {
      c.name = model.name;
      c.all_must_move = fault == MaskFault::none;
      all.push_back(std::move(c));
    }
  }
  return all;
}

void check_names(const LeakcheckOptions& options) {
  if (!options.load.empty() && !options.names.empty()) {
    usage_error("leakcheck", "takes the names of built-in models or --load, not both");
  }
  if (options.load.empty() && options.heads != 0) usage_error("--heads", "goes with --load");
  const std::vector<BuiltIn> models = built_in_models();
  for (const std::string& name : options.names) {
    const bool known = std::any_of(models.begin(), models.end(),
                                   [&](const BuiltIn& model) { return matches_any({name}, model.name); });
    if (!known) usage_error("leakcheck", "no model is called '" + name + "'; orrery leakcheck --list names all");
    const bool breakable = std::any_of(models.begin(), models.end(), [&](const BuiltIn& model) {
      return matches_any({name}, model.name) && can_break(model, fault_of(options.fault));
    });
    const std::string what = options.fault == "causal" ? "causal mask" : options.fault;
    if (!breakable)
      usage_error("--break", "there is no " + what + " in '" + name + "' to break: nothing would be checked");
  }
}

int run(const LeakcheckOptions& options) {
  check_names(options);
  if (options.list) {
    for (const BuiltIn& model : built_in_models()) std::cout << model.name << '\n';
    return done;
  }
  set_threads(static_cast<int>(options.threads));
  print_start(std::cerr, {.seed = options.load.empty() ? std::optional<i64>(options.seed) : std::nullopt});
  const Checks checks = chosen_checks(options);
  std::cout << "#: moves   .: does not move, and must not   -: does not move, but may   X: leak\n\n";
  size_t leaks = 0, unmoved = 0;  // checks with a leak; checks where something does not move
  for (const nn::LeakCheck& c : checks) {
    const nn::LeakReport report = nn::leakcheck(c);
    std::cout << report << std::endl;
    leaks += !report.leaks.empty();
    unmoved += report.leaks.empty() && !report.ok();
  }
  if (unmoved > 0)
    std::cout << unmoved << (unmoved == 1 ? " check" : " checks")
              << " failed without a leak: an output does not depend on inputs that it should depend on\n";
  std::cout << checks.size() << " checked, " << leaks << (leaks == 1 ? " leak\n" : " leaks\n");
  check(!checks.empty(), "leakcheck", "nothing was checked");
  return leaks + unmoved == 0 ? done : failed;
}

}  // namespace

void add_leakcheck(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<LeakcheckOptions>();
  CLI::App& command =
      add_command(program, "leakcheck", "Show that no model sees the future, padding, or other sequences of its batch",
                  "Examples:\n  orrery leakcheck\n  orrery leakcheck decoder --break causal\n"
                  "  orrery leakcheck --load reverse.safetensors");
  CLI::Option* names = add_arguments(command, "MODEL", options->names,
                                     "Built-in models, such as decoder or 'transformer*'; without any: all");
  CLI::Option* load = take_folders(
      add_file(command, "--load", options->load,
               "Check the Transformer, GPT or BERT in this file, as a command of this program saved it, or in the "
               "folder of --save FOLDER/"));
  CLI::Option* heads =
      add_whole_number(command, "--heads", options->heads, 1, 1 << 20,
                       "The heads of each attention, if the GPT-2 of another program in the file does not say it");
  show_default(heads, "what the file says");
  CLI::Option* fault = add_choice(
      command, "--break", options->fault, {"none", "causal", "padding", "batch"},
      "Build a mistake in: a causal or a padding mask that is one too wide, or outputs mixed over the batch");
  CLI::Option* list = add_flag(command, "--list", options->list, "Print the names of the models, check nothing");
  CLI::Option* seed = add_seed(command, options->seed);
  exclude(seed, {load});
  add_threads(command, options->threads);
  exclude(list, {names, load, heads, fault, seed});  // what would have no effect is wrong usage
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
