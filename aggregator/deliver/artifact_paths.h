// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/trace/artifact.h"
#include "lib/trace/ids.h"

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

// The vendor's directories of some workers, in their order: INSTANCE_pid_PID, in containers
// INSTANCE_pid_PID_CONTAINER, with the first twelve characters of its id. Of two that would have
// the same, the second one gets the time when its process began, in ticks, behind it. What no name
// can have becomes a "-".
std::vector<std::string> WorkerDirectories(const std::vector<WorkerIdentity>& workers);

// The directory of a session in it: nanoseconds since the epoch, in 19 digits.
std::string SessionDirectory(uint64_t realtime_ns);

}  // namespace neurontrace
