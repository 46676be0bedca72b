// Chapter 9. A model of a disk: what may be left of a folder after a crash, from the calls that changed it.
//
// Until a call of fsync, the system may have written any part of what a program wrote, in any order: of each file any
// pages of 4096 bytes, and its new size or not; of the folder any names, renamed or not (Pillai et al. 2014, "All File
// Systems Are Not Created Equal", calls this the abstract persistence model). fsync of a file makes the file's own
// changes certain, but not its name; fsync of the folder makes names certain. A rename happens as a whole.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/faults/trained_programs.h"

namespace orrery::faults {

class Disk {
 public:
  /// The names and files that a crash leaves.
  struct State {
    std::map<std::string, int> names;
    std::vector<std::string> files;
  };
  /// none where no file has this name.
  static std::optional<std::string> contents_of(const std::string& name, const State& state) {
    const auto found = state.names.find(name);
    return found == state.names.end() ? std::nullopt : std::optional(state.files[static_cast<size_t>(found->second)]);
  }

  /// The files that stand in `folder` before, and the calls that follow.
  Disk(const std::string& folder, const FolderState& before, const std::vector<Call>& calls) : folder_(folder + "/") {
    for (const auto& [name, text] : before) {
      names_[name] = static_cast<int>(first_.files.size());
      first_.files.push_back(text);
    }
    first_.names = names_;
    for (now_ = 1; now_ <= calls.size(); ++now_)
      if (calls[now_ - 1].done) take(calls[now_ - 1]);
    calls_ = calls.size();
  }

  /// What stood under a name since the call `made`.
  struct Version {
    size_t made;
    bool renamed;
    std::optional<std::string> contents;
  };
  std::vector<Version> history(const std::string& name) const {
    std::vector<Version> result;
    const auto add_since = [&](size_t made, bool renamed) {
      State state = first_;
      for (const Change& change : changes_)
        if (change.made <= made) apply(change, state);
      result.push_back({made, renamed, contents_of(name, state)});
    };
    add_since(0, false);
    for (const Change& change : changes_)
      if (change.of_folder() && (change.name == name || change.from == name))
        add_since(change.made, change.kind == Change::rename);
    return result;
  }

  /// The versions of a file that a crash after `call` calls may leave. A rename is promised once the program has opened
  /// or removed a file after it. The result is the latest promised version and all later ones; without a promised one,
  /// every version so far.
  std::set<std::optional<std::string>> allowed(const std::vector<Version>& history, size_t call) const {
    size_t promised = 0;
    for (const Version& version : history) {
      const auto next = std::upper_bound(steps_.begin(), steps_.end(), version.made);
      if (version.renamed && next != steps_.end() && *next <= call) promised = version.made;
    }
    std::set<std::optional<std::string>> result;
    for (const Version& version : history)
      if (version.made >= promised && version.made <= call) result.insert(version.contents);
    return result;
  }

  /// Calls `check` with what a crash after `call` calls may leave: with none, all, any one, all but one and the first
  /// ones of the uncertain changes, and some random ones.
  void crash(size_t call, Rng& rng, const std::function<void(const State&)>& check) const {
    State certain = first_;
    std::vector<const Change*> uncertain;
    for (const Change& change : changes_) {
      if (change.made > call) break;
      if (change.safe <= call)
        apply(change, certain);
      else
        uncertain.push_back(&change);
    }
    const auto with = [&](const std::function<bool(size_t)>& happened) {
      State state = certain;
      for (size_t i = 0; i < uncertain.size(); ++i)
        if (happened(i)) apply(*uncertain[i], state);
      check(state);
    };
    const size_t n = uncertain.size();
    for (size_t first = 0; first <= n; ++first) with([&](size_t i) { return i < first; });
    for (size_t one = 0; one < n; ++one) {
      with([&](size_t i) { return i == one; });
      with([&](size_t i) { return i != one; });
    }
    constexpr int random_ones = 8;
    for (int trial = 0; n > 1 && trial < random_ones; ++trial) with([&](size_t) { return rng.bits64() % 2 == 1; });
  }

  size_t calls() const { return calls_; }

 private:
  static constexpr size_t never = std::numeric_limits<size_t>::max(), page = 4096;

  // One thing that happens as a whole or not at all.
  struct Change {
    enum Kind { link, rename, unlink, resize, grow, data } kind;
    int file = -1;
    std::string name{}, from{}, bytes{};
    size_t at = 0;  // the offset of data, or a size
    size_t made = 0, safe = never;
    bool of_folder() const { return kind <= unlink; }
  };

  static void apply(const Change& change, State& to) {
    std::string* const text = change.file < 0 ? nullptr : &to.files[static_cast<size_t>(change.file)];
    switch (change.kind) {
      case Change::link: to.names[change.name] = change.file; break;
      case Change::rename:
        if (to.names.contains(change.from) && to.names[change.from] == change.file) to.names.erase(change.from);
        to.names[change.name] = change.file;
        break;
      case Change::unlink: to.names.erase(change.name); break;
      case Change::resize: text->resize(change.at); break;
      case Change::grow: text->resize(std::max(text->size(), change.at)); break;
      case Change::data:
        if (change.at < text->size())
          text->replace(change.at, change.bytes.size(), change.bytes, 0, text->size() - change.at);
    }
  }

  std::string name_of(const std::string& path) const { return path.substr(std::min(path.size(), folder_.size())); }

  void add(Change change) {
    change.made = now_;
    changes_.push_back(std::move(change));
  }

  void open(const Call& call) {
    const std::string name = name_of(call.about.at(1));
    const int descriptor = call.file();
    if (name.empty()) return void(open_files_[descriptor] = -1);  // the folder itself
    steps_.push_back(now_);
    if (!names_.contains(name)) {
      names_[name] = static_cast<int>(first_.files.size());
      first_.files.emplace_back();
      add({.kind = Change::link, .file = names_[name], .name = name});
    }
    open_files_[descriptor] = names_[name];
    if (call.about.at(2) == "empty") add({.kind = Change::resize, .file = names_[name]});
  }

  void write(const Call& call) {
    const int file = open_files_.at(call.file());
    const size_t offset = std::stoul(call.about.at(1));
    std::string bytes;
    for (size_t i = 0; i + 1 < call.about.at(2).size(); i += 2)
      bytes += static_cast<char>(std::stoi(call.about[2].substr(i, 2), nullptr, 16));
    for (size_t i = 0; i < bytes.size();) {
      const size_t at = offset + i, part = std::min(bytes.size() - i, page - at % page);
      add({.kind = Change::grow, .file = file, .at = at + part});
      add({.kind = Change::data, .file = file, .bytes = bytes.substr(i, part), .at = at});
      i += part;
    }
  }

  void flush(const Call& call) {
    const int file = open_files_.at(call.file());
    for (Change& change : changes_)
      if (change.safe == never && (file < 0 ? change.of_folder() : !change.of_folder() && change.file == file))
        change.safe = now_;
  }

  void take(const Call& call) {
    if (call.name == "open") return open(call);
    if (call.name == "write") return write(call);
    if (call.name == "fsync") return flush(call);
    if (call.name == "dup") return void(open_files_[std::stoi(call.about.at(1))] = open_files_.at(call.file()));
    if (call.name == "truncate" || call.name == "allocate")
      return add({.kind = call.name == "truncate" ? Change::resize : Change::grow,
                  .file = open_files_.at(call.file()),
                  .at = std::stoul(call.about.at(1))});
    if (call.name == "rename") {
      const std::string from = name_of(call.about.at(0)), to = name_of(call.about.at(1));
      add({.kind = Change::rename, .file = names_.at(from), .name = to, .from = from});
      names_[to] = names_.at(from);
      names_.erase(from);
    }
    if (call.name == "unlink") {
      const std::string name = name_of(call.about.at(0));
      add({.kind = Change::unlink, .name = name});
      steps_.push_back(now_);
      names_.erase(name);
    }
  }

  const std::string folder_;
  State first_;                       // files that come later are empty
  std::map<std::string, int> names_;  // now
  std::map<int, int> open_files_;     // of each descriptor; -1: the folder
  std::vector<Change> changes_;
  std::vector<size_t> steps_;  // the calls that open or remove a file
  size_t now_ = 0, calls_ = 0;
};

}  // namespace orrery::faults
