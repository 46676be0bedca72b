// Chapter 9. `orrery figure`: draws the pictures of the README and of the book as SVG.
#include <iostream>
#include <map>
#include <memory>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/shipped_files.h"
#include "apps/show/figure/figures.h"
#include "core/error.h"
#include "core/files/file.h"

namespace orrery {
namespace {

struct FigureOptions {
  std::string name, data, out;
};

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, picture] : pictures()) result.push_back(name);
  return result;
}

std::string drawn_from(const std::string& path, Picture draw) {
  const InputFile file(path);
  check(file.size() <= most_figure_bytes, "figure", path, " has ", file.size(),
        " bytes: this is not the data of a picture");
  return within("read " + path, [&] { return draw(file.text()); });
}

int run(const FigureOptions& options) {
  const std::string data = options.data.empty() ? shipped_path("apps/data/" + options.name + ".json") : options.data;
  check_can_write_text("figure", "--out", options.out);
  check(!is_same_file(options.out, data), "figure", "--out ", options.out, " would write over the numbers to draw");
  const std::string drawn = drawn_from(data, pictures().at(options.name));
  if (options.out.empty())
    std::cout << drawn << std::flush;
  else
    write_text(options.out, drawn);
  return done;
}

}  // namespace

const std::map<std::string, Picture>& pictures() {
  static const std::map<std::string, Picture> all{
      {"attention", [](const std::string& data) { return draw(attention_figure(data)); }},
      {"speed", [](const std::string& data) { return draw(speed_figure(data)); }},
      {"toy_heads", [](const std::string& data) { return draw(heads_figure(data)); }},
      {"toy_loss", [](const std::string& data) { return draw(loss_figure(data)); }},
      {"translators", [](const std::string& data) { return draw(translators_figure(data)); }}};
  return all;
}

void add_figure(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<FigureOptions>();
  CLI::App& command = add_command(program, "figure", "Draw a picture of the README or of the book, as SVG",
                                  "Examples:\n  orrery figure attention --out attention.svg\n"
                                  "  orrery toy --attention a.json && orrery figure attention --data a.json > a.svg");
  require(add_choice(command, "PICTURE", options->name, names(), "Which picture"));
  add_file(command, "--data", options->data, "Numbers to draw; without it those that come with the program");
  add_output_file(command, "--out", options->out, "Write the picture to this file; without it to stdout");
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
