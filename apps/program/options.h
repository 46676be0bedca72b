// Chapter 9. The options of a command: how they are added, and what is said of a wrong value.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "apps/program/output_file.h"
#include "core/dtype.h"
#include "core/products/precision.h"

// CLI11's header takes seconds to compile, so only command.cpp, options.cpp and option_file.cpp include it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace orrery {

/// The options that are added after this are listed under `title` in the help.
void begin_group(CLI::App& command, const std::string& title);

/// A switch: `value` becomes true when it is given.
CLI::Option* add_flag(CLI::App& command, const std::string& name, bool& value, const std::string& description);
/// Two switches, --NAME and --no-NAME, for a value that is true in one preset and false in another.
CLI::Option* add_switch(CLI::App& command, const std::string& name, bool& value, const std::string& description);
/// An option whose value must not be empty (an unset variable of the shell), nor an option of the command. `kind` names
/// the value in the help.
CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value, const std::string& kind,
                      const std::string& description);
/// An option or argument whose value is the name of a file. One that begins with "-" is wrong usage; "./-" means such a
/// file. `kind` names an option's value in the help.
CLI::Option* add_file(CLI::App& command, const std::string& name, std::string& value, const std::string& description,
                      const std::string& kind = "FILE");
/// An option whose value is the name of a file to write. The help adds that an earlier file is replaced, but never a
/// model: the command refuses one by `check_can_write_text` (output_file.h).
CLI::Option* add_output_file(CLI::App& command, const std::string& name, std::string& value,
                             const std::string& description);
/// In a folder that a training was saved in, the model; any other path as it is.
std::string model_in(const std::string& path);
/// Makes an option of one file or several take folders as well, for the model in them. Returns it.
CLI::Option* take_folders(CLI::Option* model);
/// Makes an option take `change` of the text that is given. Returns it.
CLI::Option* change_text(CLI::Option* option, const std::function<std::string(const std::string&)>& change);
/// Any number of positional arguments.
CLI::Option* add_arguments(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                           const std::string& description);
/// The same for names of files, which --config reads and --print-config prints.
CLI::Option* add_files(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                       const std::string& description);
/// An option whose value is the name of a file, and which may be given several times: "--load a --load b".
CLI::Option* add_repeated_file(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                               const std::string& description);
/// Separates the files in the text of a default: a character that no name of a file has.
inline constexpr char between_files = '\0';
/// What the help calls the value of the following two options. A default outside their range means that the program
/// finds the value out later.
inline constexpr std::string_view number_kind = "NUMBER";
/// An option whose value must be a whole number from `low` to `high`.
CLI::Option* add_whole_number(CLI::App& command, const std::string& name, i64& value, i64 low, i64 high,
                              const std::string& description);
/// An option whose value must be a finite number from `low` to `high`.
CLI::Option* add_number(CLI::App& command, const std::string& name, double& value, double low, double high,
                        const std::string& description);
/// An option whose value must be one of `allowed`. `when_chosen` is called with it before later options take effect.
CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value,
                        const std::vector<std::string>& allowed, const std::string& description,
                        const std::function<void(const std::string&)>& when_chosen = {});
/// The same for a value of any type: `get` and `set` use its place in `allowed`, counted from 0.
CLI::Option* add_numbered_choice(CLI::App& command, const std::string& name, const std::vector<std::string>& allowed,
                                 const std::string& description, const std::function<size_t()>& get,
                                 const std::function<void(size_t)>& set);
/// The same for an enumeration. Its function `names` gives the names of its values, in their order.
template <class Enum>
requires std::is_enum_v<Enum> CLI::Option* add_choice(CLI::App& command, const std::string& name, Enum& value,
                                                      const std::string& description) {
  const auto allowed = names(Enum{});
  return add_numbered_choice(
      command, name, {allowed.begin(), allowed.end()}, description, [&value] { return static_cast<size_t>(value); },
      [&value](size_t chosen) { value = static_cast<Enum>(chosen); });
}
/// `--seed`: from 0 to 2^63 - 1.
CLI::Option* add_seed(CLI::App& command, i64& seed);
/// `--threads`: from 1 to 256. Sets `threads` to its default, the threads of OpenMP. Pass the value to `set_threads`.
CLI::Option* add_threads(CLI::App& command, i64& threads);

/// `--products own` or `--products blas`, and `--precision f32` or `--precision bf16`. Sets `products` to what is in
/// use. Pass the value to `set_products`.
std::vector<CLI::Option*> add_products(CLI::App& command, ProductOptions& products);
/// What `use_products` does. Wrong usage: bf16 by BLAS.
void set_products(const ProductOptions& products);

/// Sets the text that the help shows as the default of `option`.
void show_default(CLI::Option* option, const std::string& text);
/// Leaving `option` out is wrong usage.
void require(CLI::Option* option);
/// Giving `option` and one of `others` together is wrong usage.
void exclude(CLI::Option* option, const std::vector<CLI::Option*>& others);
/// The options added so far, without `--help`.
std::vector<CLI::Option*> options_of(CLI::App& command);
/// Those that `add` adds.
std::vector<CLI::Option*> added_by(CLI::App& command, const std::function<void()>& add);
/// Whether the option was typed, or stood in the file of --config.
bool is_given(const CLI::Option* option);
/// "--seed".
std::string typed_name(const CLI::Option* option);

/// Ends the command with exit code 2: `subject` is the option or argument, `rule` says what is allowed.
[[noreturn]] void usage_error(const std::string& subject, const std::string& rule);

/// Whether `text` matches one of the shell's patterns, such as 'nn/*'; true if there are none.
bool matches_any(const std::vector<std::string>& patterns, const std::string& text);
/// "a, b, c"
std::string listed(const std::vector<std::string>& names);
/// "a, b, c and 12 more", of more than `most` names.
std::string some_of(const std::vector<std::string>& names, size_t most);

}  // namespace orrery
