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

// A host between two boots. CLOCK_MONOTONIC_RAW restarts at each boot, so readings of two boots
// cannot be compared. A plain value.
struct HostBoot {
  std::string instance_id;
  std::string boot_id;
  friend auto operator<=>(const HostBoot&, const HostBoot&) = default;
};

// An interval of this aggregator's CLOCK_REALTIME in ns, both ends included.
struct RealtimeWindow {
  uint64_t begin_ns = 0;
  uint64_t end_ns = ~uint64_t{0};
  friend bool operator==(const RealtimeWindow&, const RealtimeWindow&) = default;
};

// One batch of a host's clock evidence, in the encoding of lib/trace/clock_evidence_codec.h and
// stored as received.
struct ClockEvidenceBatch {
  HostBoot host;
  // When the last of it was measured, by this aggregator's CLOCK_REALTIME. Accurate enough to find
  // a capture's evidence and to expire old evidence; nothing is computed from it.
  uint64_t measured_realtime_ns = 0;
  std::string observations;
};

// One run of the reference timescale: reference time is the raw clock of one boot plus an offset.
struct ReferenceEpoch {
  uint32_t number = 0;     // counts from 1
  std::string raw_origin;  // identifies the boot; empty: unknown
  uint64_t offset_ns = 0;
  uint64_t begun_realtime_ns = 0;
  friend bool operator==(const ReferenceEpoch&, const ReferenceEpoch&) = default;
};

// Keeps measurements of clocks unchanged until they are pruned. Models are derived from them and
// can be fitted again at any time (docs/decisions/0015). Any thread; calls wait for the disk. The
// database must outlive it.
class ClockEvidenceStore {
 public:
  // How much evidence a host has in a window.
  struct Extent {
    uint64_t batches = 0;
    uint64_t bytes = 0;                      // of the values
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

  // Stores all batches in one write, as durable on return as the constructor's `durability`. The
  // same batch stored again replaces itself; overlapping batches are kept, and Read removes what
  // they repeat.
  absl::Status Put(const std::vector<ClockEvidenceBatch>& batches);

  // Returns what was measured of a host in a window, each list in the order of raw time and without
  // duplicates; empty if nothing was. Fails with DATA_LOSS for bytes that Put did not write.
  absl::StatusOr<ClockEvidence> Read(const HostBoot& host, const RealtimeWindow& window) const;
  // Returns when the last of a host was measured, on the axis of RealtimeWindow; 0 if nothing was.
  absl::StatusOr<uint64_t> LastMeasuredNs(const HostBoot& host) const;
  // Counts a host's batches in a window without decoding them.
  absl::StatusOr<Extent> ExtentOf(const HostBoot& host, const RealtimeWindow& window) const;
  // Lists the hosts that have any evidence.
  absl::StatusOr<std::vector<HostBoot>> Hosts() const;

  // Removes what was measured before `before_ns`, except in the windows of `keep`, which may
  // overlap and need no order. Not synced: what a crash restores is pruned again.
  absl::StatusOr<Pruned> Prune(uint64_t before_ns, std::vector<RealtimeWindow> keep);

  // Returns the epoch of a reference timescale with this raw clock: the last epoch if its origin is
  // the same, otherwise a new one with the given offset that begins now. Synced on return. An empty
  // origin always begins a new epoch, as nothing shows that the raw clock is the same.
  absl::StatusOr<ReferenceEpoch> ContinueEpoch(std::string_view raw_origin, uint64_t offset_ns,
                                               uint64_t now_realtime_ns);
  // Lists all epochs by number.
  absl::StatusOr<std::vector<ReferenceEpoch>> Epochs() const;

 private:
  absl::Status PruneHost(const HostBoot& host, uint64_t before_ns,
                         const std::vector<RealtimeWindow>& keep, Pruned& pruned);

  Database& database_;
  const Durability durability_;
};

// The aggregator stores evidence of its own host's clocks beside that of all others, under an empty
// instance id. Messages of agents without an instance id are refused, so the two cannot be
// confused. In place of a boot id it has what its raw clock counts from (RawOrigin), which is the
// same for an aggregator that restarts.
//
// Its exchanges (ProbePath::kPeer) are with itself and take no time. Each states which reading of
// raw is which of the reference, and in which epoch.
inline HostBoot ReferenceHost(std::string raw_origin) { return {"", std::move(raw_origin)}; }
inline bool IsReferenceHost(const HostBoot& host) { return host.instance_id.empty(); }

}  // namespace neurontrace
