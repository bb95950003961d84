// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/durability.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

class Database;

// A host between two boots: its CLOCK_MONOTONIC_RAW restarts with each.
struct HostBoot {
  std::string instance_id;
  std::string boot_id;
  friend auto operator<=>(const HostBoot&, const HostBoot&) = default;
};

// A stretch of this aggregator's CLOCK_REALTIME, both ends included.
struct RealtimeWindow {
  uint64_t begin_ns = 0;
  uint64_t end_ns = ~uint64_t{0};
  friend bool operator==(const RealtimeWindow&, const RealtimeWindow&) = default;
};

// One batch of a host's clock evidence (lib/trace/clock_evidence_codec.h), as it came.
struct ClockEvidenceBatch {
  HostBoot host;
  // When the last of it was measured, by this aggregator's CLOCK_REALTIME: good enough to find the
  // evidence of a capture, and to say what is old.
  uint64_t measured_realtime_ns = 0;
  std::string observations;
};

// Which run of the reference timescale: raw of a boot and an offset.
struct ReferenceEpoch {
  uint32_t number = 0;  // from 1
  std::string raw_origin;
  uint64_t offset_ns = 0;
  uint64_t begun_realtime_ns = 0;
  friend bool operator==(const ReferenceEpoch&, const ReferenceEpoch&) = default;
};

// What was measured of clocks, raw and for ever, or until it is pruned. Any thread.
class ClockEvidenceStore {
 public:
  // How much there is of a host in a window.
  struct Extent {
    uint64_t batches = 0;
    uint64_t bytes = 0;
    uint64_t last_measured_realtime_ns = 0;  // 0 without a batch
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  struct Pruned {
    uint64_t batches = 0;
    uint64_t bytes = 0;
  };

  ClockEvidenceStore(Database& database, Durability durability)
      : database_(database), durability_(durability) {}
  ClockEvidenceStore(const ClockEvidenceStore&) = delete;
  ClockEvidenceStore& operator=(const ClockEvidenceStore&) = delete;

  // All of it, in one write that is durable when this returns. A batch that comes again is kept
  // again; Read gives what is in both once.
  absl::Status Put(const std::vector<ClockEvidenceBatch>& batches);

  // What was measured of a host in a window, each list in order of raw and without what is twice;
  // empty where nothing was. DATA_LOSS for bytes that Put did not write.
  absl::StatusOr<ClockEvidence> Read(const HostBoot& host, const RealtimeWindow& window) const;
  // When the last of a host was measured, as for RealtimeWindow; 0 where nothing was.
  absl::StatusOr<uint64_t> LastMeasuredNs(const HostBoot& host) const;
  absl::StatusOr<Extent> ExtentOf(const HostBoot& host, const RealtimeWindow& window) const;
  // The hosts of which there is anything.
  absl::StatusOr<std::vector<HostBoot>> Hosts() const;

  // Removes what was measured before `before_ns`, but for what lies in a window of `keep`.
  absl::StatusOr<Pruned> Prune(uint64_t before_ns, std::vector<RealtimeWindow> keep);

  // The epoch for a reference timescale that stands on this raw: the last one, if it did, else a
  // new one that begins now with the offset given. Durable when this returns.
  absl::StatusOr<ReferenceEpoch> TakeEpoch(std::string_view raw_origin, uint64_t offset_ns,
                                           uint64_t now_realtime_ns);
  // All that there were, in order.
  absl::StatusOr<std::vector<ReferenceEpoch>> Epochs() const;

 private:
  absl::Status PruneHost(const HostBoot& host, uint64_t before_ns,
                         const std::vector<RealtimeWindow>& keep, Pruned& pruned);

  Database& database_;
  const Durability durability_;
};

// The aggregator keeps evidence of its own host's clocks among that of all others, as a host
// without an instance id: every message of an agent that has none is refused, so that neither can
// be taken for the other. Instead of a boot it has what its raw counts from (RawOrigin), the same
// for an aggregator that starts again.
//
// Its exchanges (ProbePath::kPeer) are with itself and take no time: each says which reading of raw
// is which of the reference, and in which epoch.
inline HostBoot ReferenceKeeper(std::string raw_origin) { return {"", std::move(raw_origin)}; }
inline bool IsReferenceKeeper(const HostBoot& host) { return host.instance_id.empty(); }

}  // namespace neurontrace
