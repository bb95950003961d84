// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/source/artifact/artifact_file.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Searches for artifacts and hands them over, away from the agent's sequence, as disks and shared
// volumes block: the uploader in production, a list in tests. Used on the agent's sequence, where
// every callback is called, later. ArtifactSource is the only user; its callbacks are weak, so that
// one may come after it was destroyed.
class ArtifactSink {
 public:
  enum class Fate : uint8_t {
    kKept,     // the aggregator has it, byte for byte, as the capture's
    kChanged,  // it was not the same from the beginning of its reading to the end: try again
    kAway,     // the aggregator is not reached, or busy: try again
    kRefused,  // it will not be kept
  };
  struct Outcome {
    Fate fate = Fate::kRefused;
    // For people; the reason for kRefused goes into the capture.
    std::string why;
  };
  using Found = std::function<void(std::vector<FoundArtifact>, bool truncated)>;
  using Done = std::function<void(const Outcome&)>;

  virtual ~ArtifactSink() = default;
  // Calls FindArtifacts for all these directories. `truncated` is true if one of them has more
  // entries than are visited.
  virtual void Find(const std::vector<std::string>& roots, const std::string& instance_id,
                    Found done) = 0;
  // Transfers one file. The source has one call of Submit or Forgo under way at a time.
  virtual void Submit(const CaptureId& capture_id, const FoundArtifact& artifact, Done done) = 0;
  // Records in the capture that it will not have this file, and why. kKept or kRefused end that;
  // kAway means that it is to be tried again.
  virtual void Forgo(const CaptureId& capture_id, const FoundArtifact& artifact,
                     const std::string& why, Done done) = 0;
};

}  // namespace neurontrace
