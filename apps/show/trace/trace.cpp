// Chapter 9. `orrery trace`: one forward and backward pass of the paper's model, told step by step.
#include <iostream>
#include <memory>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/show/trace/model_pass.h"

namespace orrery {
namespace {

struct TraceOptions {
  std::string html;
};

int run(const TraceOptions& options) {
  check_can_write_text("trace", "--html", options.html);
  const ModelPass pass = traced_pass();
  if (options.html.empty()) {
    print_pass(std::cout, pass);
    std::cout << std::flush;
  } else {
    write_text(options.html, trace_page(pass));
  }
  return done;
}

}  // namespace

void add_trace(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App& command =
      add_command(program, "trace", "Show one forward and backward pass of the paper's model, step by step",
                  "Examples:\n  orrery trace | less\n  orrery trace --html trace.html");
  add_output_file(command, "--html", options->html,
                  "Write the pass to this file as a page for a browser; without it as text to stdout");
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
