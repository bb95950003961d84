// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/host_view.h"
#include "lib/base/status.h"

namespace neurontrace::cli {

// A machine in memory for tests, healthy except for what a test changes.
class FakeHostView final : public HostView {
 public:
  struct Entry {
    PathFacts facts;
    std::string contents;
  };

  void PutFile(const std::string& path, std::string contents, uint32_t mode = 0755) {
    entries[path] = {{PathFacts::Kind::kFile, mode}, std::move(contents)};
  }
  void PutDirectory(const std::string& path) {
    entries[path] = {{PathFacts::Kind::kDirectory, 0755}, ""};
  }
  void PutSocket(const std::string& path, uint32_t mode, uint32_t uid) {
    entries[path] = {{PathFacts::Kind::kSocket, mode, uid}, ""};
  }
  // Adds a process as /proc shows it.
  void PutProcess(uint32_t pid, uint32_t parent, const std::string& name, const std::string& maps,
                  const std::string& environment = "") {
    const std::string base = "/proc/" + std::to_string(pid) + "/";
    PutFile(base + "stat", fmt::format("{} ({}) S {} 1 1", pid, name, parent));
    PutFile(base + "maps", maps);
    PutFile(base + "environ", environment);
  }

  absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset,
                                   size_t bytes_max) override {
    const auto it = entries.find(path);
    if (it == entries.end()) return NotFound("cannot read {}: no such file", path);
    if (offset >= it->second.contents.size()) return std::string();
    return it->second.contents.substr(offset, bytes_max);
  }
  std::vector<std::string> List(const std::string& directory) override {
    std::set<std::string> names;
    const std::string prefix = directory + "/";
    for (const auto& [path, entry] : entries) {
      if (!path.starts_with(prefix)) continue;
      names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
    }
    return {names.begin(), names.end()};
  }
  std::optional<PathFacts> Examine(const std::string& path) override {
    const auto it = entries.find(path);
    return it == entries.end() ? std::nullopt : std::optional(it->second.facts);
  }
  std::string RealPath(const std::string& path) override {
    const auto it = links.find(path);
    const std::string& real = it == links.end() ? path : it->second;
    return entries.contains(path) ? real : "";
  }
  bool CanWrite(const std::string& path) override { return !unwritable.contains(path); }
  absl::StatusOr<uint64_t> FreeBytes(const std::string&) override { return free_bytes; }
  absl::Status TryToConnect(const std::string&) override { return connect_status; }
  uint32_t user() override { return user_id; }
  std::string glibc() override { return glibc_version; }
  std::optional<ClockDiscipline> discipline() override { return clock; }
  ResourceLimit locked_bytes_limit() override { return locked_bytes; }
  ResourceLimit open_files_limit() override { return open_files; }
  std::string Environment(const std::string& name) override {
    const auto it = environment.find(name);
    return it == environment.end() ? "" : it->second;
  }

  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> links;  // links to files in `entries`
  std::set<std::string> unwritable;
  std::map<std::string, std::string> environment;
  uint64_t free_bytes = uint64_t{100} << 30;
  absl::Status connect_status;
  uint32_t user_id = 1000;
  std::string glibc_version = "2.36";
  std::optional<ClockDiscipline> clock = ClockDiscipline{true, 1'000'000};
  ResourceLimit locked_bytes;
  ResourceLimit open_files = 65'536;
};

}  // namespace neurontrace::cli
