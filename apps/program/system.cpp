// Chapter 9. Reading the system's files.
#include "apps/program/machine.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace orrery {
namespace {

std::optional<i64> whole(std::string_view text) {
  while (!text.empty() && text.back() <= ' ') text.remove_suffix(1);
  i64 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// The first word after `name` in the line that begins with it; "" if there is none.
std::string word_after(const std::string& name, const std::string& text) {
  std::string word;
  for (const std::string& line : parts_of(text, '\n'))
    if (line.starts_with(name) && std::istringstream(line.substr(name.size())) >> word) break;
  return word;
}

// Cores granted by one group: "150000 100000" or "max 100000" (version 2), or two files (version 1).
std::optional<double> quota_in(const SystemFiles& files, const std::string& folder) {
  std::istringstream words(files.text(folder + "/cpu.max"));
  i64 quota = 0, period = 0;
  if (!(words >> quota >> period)) {
    quota = files.number(folder + "/cpu.cfs_quota_us", -1);
    period = files.number(folder + "/cpu.cfs_period_us", 0);
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}

// Memory that a group holds and could give back at once.
i64 reclaimable(const SystemFiles& files, const std::string& folder) {
  const std::string stat = files.text(folder + "/memory.stat");
  for (const std::string field : {"total_inactive_file ", "inactive_file "})  // version 1, version 2
    if (const auto bytes = whole(word_after(field, stat))) return *bytes;
  return 0;
}

// Jiffies of all cores, from the first line of /proc/stat (man 5 proc).
struct Jiffies {
  double idle = 0, stolen = 0, all = 0;
  explicit Jiffies(const std::string& stat) {
    std::istringstream words(stat);
    std::string name;
    words >> name;
    // The later columns, times of guests, are included in the first two.
    constexpr int idle_column = 3, waiting_for_disk = 4, steal = 7;
    double count = 0;
    for (int column = 0; column <= steal && words >> count; ++column) {
      all += count;
      if (column == idle_column || column == waiting_for_disk) idle += count;
      if (column == steal) stolen += count;
    }
  }
};

}  // namespace

std::string SystemFiles::text(const std::string& path) const {
  std::ifstream file(root_ + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

i64 SystemFiles::number(const std::string& path, i64 otherwise) const { return whole(text(path)).value_or(otherwise); }

std::vector<std::string> SystemFiles::names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(root_ + folder, absent))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

i64 bytes_in_meminfo(const std::string& meminfo, const std::string& field) {
  const auto kilobytes = whole(word_after(field + ":", meminfo));
  return kilobytes ? *kilobytes * 1024 : -1;
}

int cores_allowed(const std::string& status) {
  i64 count = 0;
  for (const std::string& range : parts_of(word_after("Cpus_allowed_list:", status), ',')) {
    const size_t dash = range.find('-');
    const auto first = whole(range.substr(0, dash)), last = dash == range.npos ? first : whole(range.substr(dash + 1));
    if (first && last && *first <= *last) count += *last - *first + 1;
  }
  return static_cast<int>(count);
}

std::vector<std::string> group_folders(const std::string& self_cgroup, const std::string& controller) {
  std::vector<std::string> folders;
  for (const std::string& line : parts_of(self_cgroup, '\n')) {  // "4:memory:/a/b" or, in version 2, "0::/a/b"
    const std::vector<std::string> fields = parts_of(line, ':');
    if (fields.size() < 3 || !fields[2].starts_with('/')) continue;
    const std::vector<std::string> controllers = parts_of(fields[1], ',');
    const bool version_2 = controllers.empty();
    if (!version_2 && std::find(controllers.begin(), controllers.end(), controller) == controllers.end()) continue;
    const std::string base = "/sys/fs/cgroup" + (version_2 ? "" : "/" + controller);
    for (std::string path = line.substr(line.find('/'));; path.resize(path.rfind('/'))) {
      while (path.ends_with('/')) path.pop_back();
      folders.push_back(base + path);
      if (path.empty()) break;
    }
  }
  return folders;
}

double granted_cores(const SystemFiles& files) {
  double least = 0;
  for (const std::string& folder : group_folders(files.text("/proc/self/cgroup"), "cpu"))
    if (const auto quota = quota_in(files, folder)) least = least == 0 ? *quota : std::min(least, *quota);
  return least;
}

SystemMemory memory_of(const SystemFiles& files) {
  const std::string meminfo = files.text("/proc/meminfo");
  SystemMemory memory{.total = std::max<i64>(0, bytes_in_meminfo(meminfo, "MemTotal")),
                      .available = std::max<i64>(0, bytes_in_meminfo(meminfo, "MemAvailable"))};
  for (const std::string& folder : group_folders(files.text("/proc/self/cgroup"), "memory")) {
    const auto bytes = [&](const std::string& version_2, const std::string& version_1) {
      const i64 found = files.number(folder + version_2, -1);
      return found >= 0 ? found : files.number(folder + version_1, -1);
    };
    const i64 limit = bytes("/memory.max", "/memory.limit_in_bytes"),
              used = bytes("/memory.current", "/memory.usage_in_bytes");
    if (limit < 0 || limit >= memory.total) continue;
    memory.limited = true;
    memory.total = limit;
    if (used >= 0)
      memory.available = std::min(memory.available, std::max<i64>(0, limit - used + reclaimable(files, folder)));
  }
  memory.available = std::min(memory.available, memory.total);
  return memory;
}

BusyCores busy_cores(const std::string& before, const std::string& after, int cores) {
  const Jiffies first(before), second(after);
  const double all = second.all - first.all;
  const auto share = [&](double part) { return all > 0 ? std::clamp(part / all, 0.0, 1.0) * cores : 0; };
  return {.busy = share(all - (second.idle - first.idle)), .stolen = share(second.stolen - first.stolen)};
}

}  // namespace orrery
