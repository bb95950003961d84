// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/trace/artifact.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Returns the paths of artifacts in a delivery, in their order: the place where each was found.
// Pods can give their processes the same directory. If two artifacts at one place differ, the
// second is put below agent-HASH if it is another agent's, and otherwise below root-ROOT. An empty
// path means that the same content is there already. A pure function.
std::vector<std::string> ArtifactPaths(const std::vector<ArtifactReference>& artifacts);

// Returns, for each worker, those of `paths` that certainly belong to it: the artifact was found
// under its instance and process id, which no other of the workers has. Processes in containers
// have other ids in their own namespace, so that few of theirs can be attributed. A pure function.
std::vector<std::vector<std::string>> ArtifactPathsOfWorkers(
    const std::vector<WorkerIdentity>& workers, const std::vector<ArtifactReference>& artifacts,
    const std::vector<std::string>& paths);

// Returns the vendor's directory of each worker: INSTANCE_pid_PID, in containers
// INSTANCE_pid_PID_CONTAINER with the first twelve characters of the container's id. If two workers
// would have the same directory, the start time of the second one's process, in ticks, is appended.
// Characters that the names cannot have become "-".
std::vector<std::string> WorkerDirectories(const std::vector<WorkerIdentity>& workers);

// Returns the name of a session's directory below it: nanoseconds since the epoch in 19 digits.
std::string SessionDirectory(uint64_t realtime_ns);

}  // namespace neurontrace
