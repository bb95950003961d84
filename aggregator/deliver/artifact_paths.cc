// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/artifact_paths.h"

#include <fmt/format.h>

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/sha256.h"

namespace neurontrace {
namespace {

constexpr size_t kAgentDigits = 12;

}  // namespace

std::vector<std::string> ArtifactPaths(const std::vector<ArtifactReference>& artifacts) {
  std::vector<std::string> paths;
  absl::flat_hash_map<std::string, const ArtifactReference*> taken;
  for (const ArtifactReference& artifact : artifacts) {
    std::string path = artifact.place.path();
    const std::string root = artifact.root.empty() ? "" : "root-" + artifact.root + "/";
    const ArtifactReference& first = *taken.try_emplace(path, &artifact).first->second;
    const std::string agent =
        first.agent_id == artifact.agent_id
            ? ""
            : fmt::format("agent-{}/", Sha256HexOf(artifact.agent_id).substr(0, kAgentDigits));
    // The last one is its own: nothing else has this agent, root and path.
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
    if (!is_new) at->second = workers.size();  // nobody's
  }
  std::vector<std::vector<std::string>> of(workers.size());
  for (size_t i = 0; i < artifacts.size(); ++i) {
    const ArtifactPlace& place = artifacts[i].place;
    const auto at = by_process.find({place.instance_id, place.pid});
    if (paths[i].empty() || at == by_process.end() || at->second == workers.size()) continue;
    if (!place.container.empty() && workers[at->second].container_id.empty()) continue;
    of[at->second].push_back(paths[i]);
  }
  return of;
}

}  // namespace neurontrace
