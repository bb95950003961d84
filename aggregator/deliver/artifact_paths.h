// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trace/artifact.h"
#include "trace/ids.h"

namespace neurontrace {

// Where the artifacts of a delivery go, in their order: the place where each was found. Pods can
// give their processes the same directory: of two that differ at one place the second goes below
// root-ROOT, or below agent-HASH where it is another agent's. Empty: the same content is there.
std::vector<std::string> ArtifactPaths(const std::vector<ArtifactReference>& artifacts);

// For each worker the paths, of those above, that are known to be its: they were found in a
// directory with its instance and process id, which no other one of the workers has. In containers
// processes have other ids for themselves, so that of theirs few are known.
std::vector<std::vector<std::string>> ArtifactPathsOfWorkers(
    const std::vector<WorkerIdentity>& workers, const std::vector<ArtifactReference>& artifacts,
    const std::vector<std::string>& paths);

}  // namespace neurontrace
