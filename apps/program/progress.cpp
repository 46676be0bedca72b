// Chapter 9. Drawing the progress of a run.
#include "apps/program/progress.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/program/terminal.h"

namespace orrery {
namespace {

constexpr double redraw_seconds = 0.1;
constexpr i64 plain_lines = 10;

// The largest number of columns that fit into one line.
size_t columns_of(const Terminal& terminal) { return static_cast<size_t>(std::max(1, terminal.width - 1)); }

}  // namespace

void LiveLine::show(const std::string& text) {
  if (!terminal_.live) return;
  const double now = clock_();
  if (drawn_at_ >= 0 && now - drawn_at_ < redraw_seconds) return;
  drawn_at_ = now;
  draw(text.substr(0, columns_of(terminal_)));
}

void LiveLine::clear() {
  if (drawn_ == 0) return;
  draw("");
  out_ << '\r' << std::flush;
}

// Erases the rest of the earlier text with spaces, since the output is to have no escape sequence under NO_COLOR.
void LiveLine::draw(const std::string& text) {
  out_ << '\r' << text << std::string(drawn_ - std::min(drawn_, text.size()), ' ') << std::flush;
  drawn_ = text.size();
}

Progress::Progress(std::ostream& out, Terminal terminal, i64 total, i64 done_before, Clock clock)
    : out_(out),
      clock_(clock),
      live_(out, terminal, clock),
      plain_(!terminal.live),
      width_(terminal.live ? columns_of(terminal) : std::string::npos),
      total_(total),
      done_before_(done_before),
      start_(clock_()) {}

void Progress::update(const StepReport& report) {
  items_ += report.items;
  const i64 tenth = report.step * plain_lines / std::max<i64>(1, total_);
  const i64 tenth_before = (report.step - 1) * plain_lines / std::max<i64>(1, total_);
  // With a time limit it may be out before a tenth of the steps is made.
  const double elapsed = clock_() - start_;
  const bool tenth_of_time = limit_ > 0 && elapsed * plain_lines / limit_ >= static_cast<double>(tenths_of_time_ + 1);
  if (tenth_of_time) tenths_of_time_ = static_cast<i64>(elapsed * plain_lines / limit_);
  const bool last = report.step >= total_;
  if (last) live_.clear();
  if (last || (plain_ && (tenth > tenth_before || tenth_of_time))) {
    out_ << line(report) << std::endl;
  } else {
    live_.show(line(report));
  }
}

void Progress::note(const std::string& text) {
  live_.clear();
  out_ << text << std::endl;
}

std::string Progress::line(const StepReport& report) const {
  const double elapsed = std::max(1e-9, clock_() - start_);
  const double per_step = elapsed / static_cast<double>(std::max<i64>(1, report.step - done_before_));
  const double all = per_step * static_cast<double>(std::max<i64>(0, total_ - report.step));
  const double planned = planned_ > 0 ? planned_ - elapsed : all;
  const double left = std::max(0.0, limit_ > 0 ? std::min(limit_ - elapsed, planned) : planned);
  const std::string total = std::to_string(total_);
  struct Part {
    std::string text;
    int goes;  // the order in which parts are left out if there is no room; 0: never
  };
  std::vector<Part> parts{{numbers("step %*lld/%lld", static_cast<int>(total.size()),
                                   static_cast<long long>(report.step), static_cast<long long>(total_)),
                           0},
                          {numbers("loss %.4f", report.loss), 0},
                          {report.validation ? numbers("validation %.4f", *report.validation) : "", 4},
                          {report.accuracy ? numbers("accuracy %5.1f %%", 100 * *report.accuracy) : "", 3},
                          {numbers("rate %.1e", report.rate), 1},
                          {numbers("%.0f ", static_cast<double>(items_) / elapsed) + unit_ + "/s", 2},
                          {report.step >= total_ ? "took " + duration(elapsed) : duration(left) + " left", 0}};
  for (int gone = 0;; ++gone) {
    std::erase_if(parts, [&](const Part& part) { return part.text.empty() || (gone > 0 && part.goes == gone); });
    std::string line;
    for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
    if (line.size() <= width_ || gone == 4) return line;
  }
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return numbers("%lld s", whole);
  if (whole < 3600) return numbers("%lld min %02lld s", whole / 60, whole % 60);
  return numbers("%lld h %02lld min", whole / 3600, whole / 60 % 60);
}

}  // namespace orrery
