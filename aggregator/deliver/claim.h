// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/deliver/volume.h"
#include "base/clock.h"

namespace neurontrace {

// The right to write a directory of a volume, which one at a time has, of this aggregator and all
// others: files claim.<n>.json, each made only where none has its name. Who holds it makes the next
// one in good time before the lease of the last one ends, and removes the last; whoever finds one
// whose lease ended some time ago takes its place in the same way. Needs clocks that agree to
// kClaimGraceNs. One thread at a time.
class Claim {
 public:
  static constexpr uint64_t kClaimLeaseNs = 120'000'000'000;
  static constexpr uint64_t kClaimRenewNs = 30'000'000'000;  // after the last one
  static constexpr uint64_t kClaimGraceNs = 30'000'000'000;  // after its end it still counts

  // UNAVAILABLE, with who has it and until when, where somebody has. `volume` and `clock` outlive
  // it.
  static absl::StatusOr<std::unique_ptr<Claim>> Take(Volume& volume, const std::string& directory,
                                                     const std::string& owner, const Clock& clock);
  // Releases it.
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // To be called often: renews it when it is time. ABORTED when another has it by now, or it could
  // not be renewed in time: nothing may be written any more.
  absl::Status Keep();

 private:
  Claim(Volume& volume, std::string directory, std::string owner, const Clock& clock)
      : volume_(volume),
        directory_(std::move(directory)),
        owner_(std::move(owner)),
        clock_(clock) {}
  std::string NameOf(uint64_t number) const;
  // Makes number `number`, if nobody else has one that counts.
  absl::Status Make(uint64_t number);
  // UNAVAILABLE where another one counts. `newest` is the highest number there, 0 without any.
  absl::Status LookAround(uint64_t own, bool remove_dead, uint64_t& newest);

  Volume& volume_;
  const std::string directory_;
  const std::string owner_;
  const Clock& clock_;
  uint64_t number_ = 0;  // of the one that is ours; 0: none
  uint64_t made_monotonic_ns_ = 0;
};

}  // namespace neurontrace
