// Chapter 9. `orrery figure`: draws the pictures of the README and of the book as SVG.
//
// Serves: apps/toy/toy.cpp
#include <iostream>
#include <map>
#include <memory>

#include "apps/figure/figures.h"
#include "apps/program/command.h"
#include "core/error.h"
#include "core/files/file.h"

namespace orrery {
namespace {

struct FigureOptions {
  std::string name, data, out;
};

using Picture = std::string (*)(const std::string& data);

// Every picture by its name.
const std::map<std::string, Picture>& figures() {
  static const std::map<std::string, Picture> all{
      {"attention", [](const std::string& data) { return draw(attention_figure(data)); }},
      {"speed", [](const std::string& data) { return draw(speed_figure(data)); }}};
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, draw_it] : figures()) result.push_back(name);
  return result;
}

int run(const FigureOptions& options) {
  const std::string data = options.data.empty() ? ORRERY_DATA_FOLDER "/" + options.name + ".json" : options.data;
  check_can_write("figure", "--out", options.out);
  const InputFile file(data);
  constexpr u64 most_bytes = u64{1} << 20;
  check(file.size() <= most_bytes, "figure", data, " has ", file.size(), " bytes: these are no data of a picture");
  std::string text(file.size(), ' ');
  file.read(0, std::as_writable_bytes(std::span(text)));
  const std::string picture = figures().at(options.name)(text);
  if (options.out.empty())
    std::cout << picture << std::flush;
  else
    write_text(options.out, picture);
  return done;
}

}  // namespace

void add_figure(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<FigureOptions>();
  CLI::App& command =
      add_command(program, "figure", "Draw a picture of the README or of the book, as SVG",
                  "Examples:\n  orrery figure attention --out attention.svg\n"
                  "  orrery toy --attention mine.json && orrery figure attention --data mine.json > mine.svg");
  require(add_choice(command, "name", options->name, names(), "Which picture"));
  add_file(command, "--data", options->data, "Numbers to draw; without it those that come with the program");
  add_file(command, "--out", options->out, "Write the picture to this file; without it to stdout");
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
