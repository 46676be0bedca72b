// Chapter 9. Reading the system's files.
#include "apps/program/system.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>

namespace orrery {
namespace {

std::optional<i64> whole(std::string_view text) {
  i64 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || text.substr(static_cast<size_t>(end - text.data())).find_first_not_of(" \n") != text.npos)
    return std::nullopt;
  return value;
}

// What follows `name` in the line that begins with it; "" if there is none.
std::string_view rest_of_line(std::string_view text, std::string_view name) {
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), text.find('\n') + 1))) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(name)) return line.substr(name.size());
    if (line.size() == text.size()) break;
  }
  return "";
}

// Calls each(part) for the parts of `text` between separators.
void for_parts(std::string_view text, char separator, const std::function<void(std::string_view)>& each) {
  while (true) {
    const size_t end = text.find(separator);
    each(text.substr(0, end));
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

// Cores granted by one group: "150000 100000" or "max 100000" (version 2), or two files (version 1).
std::optional<double> quota_in(const SystemFiles& files, const std::string& folder) {
  std::istringstream words(files.text(folder + "/cpu.max"));
  std::string quota;
  double period = 0;
  if (words >> quota >> period && period > 0 && whole(quota)) return static_cast<double>(*whole(quota)) / period;
  const i64 microseconds = files.number(folder + "/cpu.cfs_quota_us", -1),
            each = files.number(folder + "/cpu.cfs_period_us", 0);
  if (microseconds > 0 && each > 0) return static_cast<double>(microseconds) / static_cast<double>(each);
  return std::nullopt;
}

// Memory that a group holds and could give back at once.
i64 reclaimable(const SystemFiles& files, const std::string& folder) {
  const std::string stat = files.text(folder + "/memory.stat");
  for (const std::string_view field : {"total_inactive_file ", "inactive_file "})  // version 1, version 2
    if (const auto bytes = whole(rest_of_line(stat, field))) return *bytes;
  return 0;
}

// Jiffies of all cores, from the first line of /proc/stat (man 5 proc).
struct Jiffies {
  double idle = 0, stolen = 0, all = 0;
  explicit Jiffies(std::string_view stat) {
    std::istringstream words{std::string(stat.substr(0, stat.find('\n')))};
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

i64 bytes_in_meminfo(std::string_view meminfo, std::string_view field) {
  std::string_view rest = rest_of_line(meminfo, std::string(field) + ":");
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  constexpr std::string_view unit = " kB";
  if (!rest.ends_with(unit)) return -1;
  const auto kilobytes = whole(rest.substr(0, rest.size() - unit.size()));
  return kilobytes ? *kilobytes * 1024 : -1;
}

int cores_allowed(std::string_view status) {
  std::string_view list = rest_of_line(status, "Cpus_allowed_list:");
  list.remove_prefix(std::min(list.size(), list.find_first_not_of(" \t")));
  i64 count = 0;
  for_parts(list, ',', [&](std::string_view range) {
    const size_t dash = range.find('-');
    const auto first = whole(range.substr(0, dash)), last = dash == range.npos ? first : whole(range.substr(dash + 1));
    if (first && last && *first <= *last) count += *last - *first + 1;
  });
  return static_cast<int>(count);
}

double share_waited(std::string_view pressure) {
  constexpr std::string_view name = "avg10=";
  const std::string_view some = rest_of_line(pressure, "some ");
  const size_t at = some.find(name);
  if (at == some.npos) return 0;
  double percent = 0;
  std::from_chars(some.data() + at + name.size(), some.data() + some.size(), percent);
  return std::clamp(percent / 100, 0.0, 1.0);
}

std::vector<std::string> group_folders(std::string_view self_cgroup, std::string_view controller) {
  const std::string mounted = "/sys/fs/cgroup";
  std::vector<std::string> folders;
  for_parts(self_cgroup, '\n', [&](std::string_view line) {  // "4:memory:/a/b" or, in version 2, "0::/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) return;
    bool ours = second == first + 1;
    std::string base = mounted;
    for_parts(line.substr(first + 1, second - first - 1), ',', [&](std::string_view name) {
      if (name != controller) return;
      ours = true;
      base += "/" + std::string(name);
    });
    std::string path(line.substr(second + 1));
    while (ours) {
      while (path.ends_with('/')) path.pop_back();
      folders.push_back(base + path);
      if (path.empty()) return;
      path.resize(path.rfind('/') == path.npos ? 0 : path.rfind('/'));
    }
  });
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

std::vector<std::string> loaded_libraries(std::string_view maps, const std::vector<std::string>& beginnings) {
  std::vector<std::string> found;
  for_parts(maps, '\n', [&](std::string_view line) {
    const size_t path = line.find('/');
    if (path == line.npos) return;
    const std::string library(line.substr(path));
    const std::string name = library.substr(library.rfind('/') + 1);
    const bool matches = std::any_of(beginnings.begin(), beginnings.end(),
                                     [&](const std::string& beginning) { return name.starts_with(beginning); });
    if (matches && std::find(found.begin(), found.end(), library) == found.end()) found.push_back(library);
  });
  return found;
}

BusyCores busy_cores(std::string_view before, std::string_view after, int cores) {
  const Jiffies first(before), second(after);
  const double all = second.all - first.all;
  const auto share = [&](double part) { return all > 0 ? std::clamp(part / all, 0.0, 1.0) * cores : 0; };
  return {.busy = share(all - (second.idle - first.idle)), .stolen = share(second.stolen - first.stolen)};
}

}  // namespace orrery
