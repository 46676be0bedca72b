// Chapter 9. The program's exit codes.
#pragma once

namespace orrery {

/// `failed` comes with a line on stderr, or with results that say what is wrong; `interrupted` is what shells report
/// for Ctrl-C.
enum ExitCode : int { done = 0, failed = 1, wrong_usage = 2, interrupted = 130 };

}  // namespace orrery
