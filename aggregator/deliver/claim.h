// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/deliver/volume.h"
#include "lib/base/clock.h"
#include "neurontrace/v1/delivery.pb.h"

namespace neurontrace {

// Identifies a writer among those of this aggregator and of all others.
struct ClaimOwner {
  // A text for whoever finds the claim; different for each delivery.
  std::string name;
  // `lock` names something that only one process at a time can hold, such as an open store, and
  // `run` the process that holds it. Whoever finds a claim with its own lock and another run knows
  // that the writer is gone, and does not wait for its lease. Empty if nothing is known.
  std::string lock;
  std::string run;
};

// The right to write a directory of a volume, which one writer at a time has among those of this
// aggregator and all others. It consists of files claim.<n>.json, each created only if its name is
// free. The holder creates the next one in good time before the lease of the last one ends, and
// removes the last. Whoever finds a claim whose lease ended some time ago, or whose writer is known
// to be gone, takes over by creating the next one.
//
// Relies on clocks that agree within kClaimGraceNs, and on a call of Keep before each operation
// that changes something in the volume. Used by one thread at a time. docs/formats/shared_volume.md
// describes the files.
class Claim {
 public:
  static constexpr uint64_t kClaimLeaseNs = 120'000'000'000;
  // After this time since the last one was made, Keep makes the next.
  static constexpr uint64_t kClaimRenewNs = 30'000'000'000;
  // For this long after its end a lease still counts for others, because clocks differ.
  static constexpr uint64_t kClaimGraceNs = 30'000'000'000;
  static_assert(kClaimRenewNs + kVolumeOperationNs < kClaimLeaseNs,
                "an operation begun just before a renewal ends before the lease");

  // Fails with UNAVAILABLE, naming the holder and the end of its lease, if the directory is
  // claimed, and with the volume's errors. `volume` and `clock` must outlive the claim.
  static absl::StatusOr<std::unique_ptr<Claim>> Take(Volume& volume, const std::string& directory,
                                                     const ClaimOwner& owner, const Clock& clock);
  // Releases the claim if it is still certainly ours: later, another's file may have its name.
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // Renews the claim when it is time; cheap otherwise, and to be called often. Fails with ABORTED
  // if another writer has it by now, or may have because it was not renewed in time; else with the
  // error of a volume that cannot be asked. After any error nothing may be written any more.
  absl::Status Keep();

 private:
  Claim(Volume& volume, std::string directory, ClaimOwner owner, const Clock& clock)
      : volume_(volume),
        directory_(std::move(directory)),
        owner_(std::move(owner)),
        clock_(clock) {}
  std::string NameOf(uint64_t number) const;
  // Creates claim `number` and makes it ours, unless its name is taken.
  absl::Status Make(uint64_t number);
  // Returns whether the claim's writer is known to be gone or its lease is long over.
  bool IsOwnerDead(const v1::DeliveryClaim& claim, uint64_t now_ns) const;
  // Returns a text about the holder of `claim`, in `file`, and the end of its lease.
  std::string DescribeHolder(const v1::DeliveryClaim& claim, const std::string& file,
                             uint64_t now_ns) const;
  uint64_t AgeNs() const { return clock_.MonotonicNs() - made_monotonic_ns_; }
  // Claims other than ours.
  struct Others {
    // The highest number there, ours included; 0 without any.
    uint64_t newest = 0;
    // A text about a claim that is in force; empty if none is.
    std::string holder;
  };
  // Reads all claims of the directory.
  absl::StatusOr<Others> ReadClaims(bool remove_dead);
  // Returns the ABORTED of Keep.
  absl::Status Lost(const std::string& why) const;

  Volume& volume_;
  const std::string directory_;
  const ClaimOwner owner_;
  const Clock& clock_;
  // Of the claim that is ours; 0 if there is none.
  uint64_t number_ = 0;
  uint64_t made_monotonic_ns_ = 0;
};

}  // namespace neurontrace
