// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/worker_directory.h"

#include <fmt/format.h>

#include <string_view>

#include "absl/container/flat_hash_set.h"

namespace neurontrace {
namespace {

constexpr size_t kContainerCharacters = 12;  // as container tools shorten ids
constexpr size_t kInstanceCharactersMax = 128;

std::string PlainName(std::string_view text, size_t characters_max) {
  std::string name(text.substr(0, characters_max));
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("._-").find(c) != std::string_view::npos;
    if (!is_plain) c = '-';
  }
  if (name.empty() || name.front() == '.') name.insert(0, "-");
  return name;
}

}  // namespace

std::vector<std::string> WorkerDirectories(const std::vector<WorkerIdentity>& workers) {
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> taken;
  for (const WorkerIdentity& worker : workers) {
    std::string name =
        fmt::format("{}_pid_{}", PlainName(worker.instance_id, kInstanceCharactersMax), worker.pid);
    if (!worker.container_id.empty()) {
      name += '_' + PlainName(worker.container_id, kContainerCharacters);
    }
    if (taken.contains(name)) name += fmt::format("_{}", worker.start_time_ticks);
    for (size_t more = 2; !taken.insert(name).second; ++more) name += fmt::format("_{}", more);
    names.push_back(std::move(name));
  }
  return names;
}

std::string SessionDirectory(uint64_t realtime_ns) { return fmt::format("{:019}", realtime_ns); }

}  // namespace neurontrace
