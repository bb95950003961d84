// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/artifact_paths.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lib/base/sha256.h"

namespace neurontrace {
namespace {

// 48 bits of the hash: agents of one capture are thousands at most. IsInspectName in manifest.cc
// accepts exactly this number of digits.
constexpr size_t kAgentDigits = 12;

constexpr size_t kContainerCharacters = 12;  // as container tools shorten ids
constexpr size_t kInstanceCharactersMax = 128;

// Returns the text's first characters with every other than letters, digits and "._-" replaced by
// "-". A result that would be empty or hidden gets a "-" in front. Instance and container ids come
// from agents, and the result becomes a directory's name.
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

std::vector<std::string> ArtifactPaths(const std::vector<ArtifactReference>& artifacts) {
  std::vector<std::string> paths;
  // The first artifact at a place gets the plain path, so that the order of the list decides.
  absl::flat_hash_map<std::string, const ArtifactReference*> taken;
  for (const ArtifactReference& artifact : artifacts) {
    std::string path = artifact.place.path();
    const std::string root = artifact.root.empty() ? "" : "root-" + artifact.root + "/";
    const ArtifactReference& first = *taken.try_emplace(path, &artifact).first->second;
    const std::string agent =
        first.agent_id == artifact.agent_id
            ? ""
            : fmt::format("agent-{}/", Sha256HexOf(artifact.agent_id).substr(0, kAgentDigits));
    // The last candidate is certainly free: no other artifact has this agent, root and path.
    for (const std::string& below : {std::string(), agent, agent + root}) {
      path = below + artifact.place.path();
      const ArtifactReference& there = *taken.try_emplace(path, &artifact).first->second;
      if (&there == &artifact) break;
      if (there.sha256 == artifact.sha256) path.clear();
      if (path.empty()) break;
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

std::vector<std::vector<std::string>> ArtifactPathsOfWorkers(
    const std::vector<WorkerIdentity>& workers, const std::vector<ArtifactReference>& artifacts,
    const std::vector<std::string>& paths) {
  absl::flat_hash_map<std::pair<std::string, uint32_t>, size_t> by_process;
  for (size_t i = 0; i < workers.size(); ++i) {
    const auto [at, is_new] = by_process.try_emplace({workers[i].instance_id, workers[i].pid}, i);
    // Two workers with one process id on one instance, as in two containers: neither gets the
    // artifact.
    if (!is_new) at->second = workers.size();
  }
  // workers.size() marks a process id that belongs to several workers.
  std::vector<std::vector<std::string>> of(workers.size());
  for (size_t i = 0; i < artifacts.size(); ++i) {
    const ArtifactPlace& place = artifacts[i].place;
    const auto at = by_process.find({place.instance_id, place.pid});
    if (paths[i].empty() || at == by_process.end() || at->second == workers.size()) continue;
    // The process id is one of the container's namespace, while the worker's is the host's.
    if (!place.container.empty() && workers[at->second].container_id.empty()) continue;
    of[at->second].push_back(paths[i]);
  }
  return of;
}

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
