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

// Who writes, of this aggregator and all others.
struct ClaimOwner {
  std::string name;  // in words, for who finds the claim; another for each delivery
  // Something that only one process at a time can have, such as an open store, and which process
  // has it: who finds a claim with its own lock of another run knows that its writer is gone, and
  // waits for no lease. Empty: nothing is known.
  std::string lock;
  std::string run;
};

// The right to write a directory of a volume, which one at a time has, of this aggregator and all
// others: files claim.<n>.json, each made only where none has its name. Who holds it makes the next
// one in good time before the lease of the last one ends, and removes the last; whoever finds one
// whose lease ended some time ago, or whose writer is known to be gone, takes its place in the same
// way. Needs clocks that agree to kClaimGraceNs, and a Keep before each operation of the volume
// that changes something. One thread at a time.
class Claim {
 public:
  static constexpr uint64_t kClaimLeaseNs = 120'000'000'000;
  static constexpr uint64_t kClaimRenewNs = 30'000'000'000;  // after the last one
  static constexpr uint64_t kClaimGraceNs = 30'000'000'000;  // after its end it still counts
  static_assert(kClaimRenewNs + kVolumeOperationNs < kClaimLeaseNs,
                "what was begun just before a renewal ends before the lease");

  // UNAVAILABLE, with who has it and until when, where somebody has. `volume` and `clock` outlive
  // it.
  static absl::StatusOr<std::unique_ptr<Claim>> Take(Volume& volume, const std::string& directory,
                                                     const ClaimOwner& owner, const Clock& clock);
  // Releases it, while it is ours: afterwards another's may have its name.
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // To be called often: renews it when it is time. ABORTED when another has it by now, or may have
  // because it was not renewed in time; else the error of a volume that cannot be asked. After any
  // of them nothing may be written any more.
  absl::Status Keep();

 private:
  Claim(Volume& volume, std::string directory, ClaimOwner owner, const Clock& clock)
      : volume_(volume),
        directory_(std::move(directory)),
        owner_(std::move(owner)),
        clock_(clock) {}
  std::string NameOf(uint64_t number) const;
  // Makes number `number`, if nobody else has one that counts.
  absl::Status Make(uint64_t number);
  bool IsOwnerDead(const v1::DeliveryClaim& claim, uint64_t now_ns) const;
  // Who has `claim`, in `file`, and until when.
  std::string InWords(const v1::DeliveryClaim& claim, const std::string& file,
                      uint64_t now_ns) const;
  uint64_t AgeNs() const { return clock_.MonotonicNs() - made_monotonic_ns_; }
  // Claims other than ours.
  struct Others {
    uint64_t newest = 0;  // the highest number there, also ours; 0 without any
    std::string holder;   // describes the owner of a claim in force; empty: none is
  };
  absl::StatusOr<Others> LookAround(bool remove_dead);
  absl::Status Lost(const std::string& why) const;

  Volume& volume_;
  const std::string directory_;
  const ClaimOwner owner_;
  const Clock& clock_;
  uint64_t number_ = 0;  // of the one that is ours; 0: none
  uint64_t made_monotonic_ns_ = 0;
};

}  // namespace neurontrace
