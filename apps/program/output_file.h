// Chapter 9. The files that commands write: what is checked before the work, and how text gets there as a whole.
#pragma once

#include <string>

namespace orrery {

/// Error of `command`, before any work: the file that `option` names cannot be written. The path "" means no file.
void check_can_write(const std::string& command, const std::string& option, const std::string& path);
/// The same for a file of text. It is also an error if a model stands there, which `write_text` would replace.
void check_can_write_text(const std::string& command, const std::string& option, const std::string& path);
/// Whether `path` is a file that can be read as a model's, or a training's. Error: the system cannot read it.
bool holds_model(const std::string& path);
/// Whether two paths name one file, whether it exists or not. "" names none.
bool is_same_file(const std::string& a, const std::string& b);
/// Writes `text` to the file `path`. If that fails, the file is unchanged.
void write_text(const std::string& path, const std::string& text);
/// An argument as typed in a shell, for commands shown in messages: in quotes if it has special characters.
std::string shell_quoted(const std::string& argument);

}  // namespace orrery
