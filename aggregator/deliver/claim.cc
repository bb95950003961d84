// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/claim.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "aggregator/deliver/manifest.h"
#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kClaimBytesMax = 4096;
constexpr std::string_view kClaimBeginning = "claim.";
constexpr std::string_view kClaimEnding = ".json";

// 0: no claim's name.
uint64_t NumberOf(std::string_view name) {
  if (!name.starts_with(kClaimBeginning) || !name.ends_with(kClaimEnding)) return 0;
  name.remove_prefix(kClaimBeginning.size());
  if (name.size() <= kClaimEnding.size()) return 0;
  name.remove_suffix(kClaimEnding.size());
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  // The last ones are never reached; who puts one there to be in the way is passed over.
  const bool is_number = error == std::errc() && rest == name.data() + name.size();
  return is_number && number < UINT64_MAX / 2 ? number : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Claim>> Claim::Take(Volume& volume, const std::string& directory,
                                                   const std::string& owner, const Clock& clock) {
  std::unique_ptr<Claim> claim(new Claim(volume, directory, owner, clock));
  uint64_t newest = 0;
  RETURN_IF_ERROR(claim->LookAround(0, false, newest));
  absl::Status status = claim->Make(newest + 1);
  if (absl::IsAlreadyExists(status)) {
    status = claim->LookAround(0, false, newest);
    if (status.ok()) {
      status =
          Unavailable("{} is being claimed by another export: try again", volume.Where(directory));
    }
  }
  RETURN_IF_ERROR(status);
  // Of two that found a dead one at the same moment, both may have made theirs.
  RETURN_IF_ERROR(claim->LookAround(claim->number_, true, newest));
  return claim;
}

Claim::~Claim() {
  if (number_ != 0) volume_.Remove(NameOf(number_)).IgnoreError();  // its lease ends
}

absl::Status Claim::Keep() {
  const uint64_t age_ns = clock_.MonotonicNs() - made_monotonic_ns_;
  if (age_ns < kClaimRenewNs) return absl::OkStatus();
  const uint64_t last = number_;
  absl::Status status = Make(last + 1);
  if (status.ok()) {
    volume_.Remove(NameOf(last)).IgnoreError();  // dies by itself
    uint64_t newest = 0;
    status = LookAround(number_, false, newest);
    if (status.ok()) return status;
  } else if (!absl::IsAlreadyExists(status) && age_ns < kClaimLeaseNs) {
    return absl::OkStatus();  // there is time for another try
  }
  return absl::AbortedError(fmt::format("{} is not ours to write any more: {}",
                                        volume_.Where(directory_), std::string(status.message())));
}

std::string Claim::NameOf(uint64_t number) const {
  return fmt::format("{}/{}{}{}", directory_, kClaimBeginning, number, kClaimEnding);
}

absl::Status Claim::Make(uint64_t number) {
  v1::DeliveryClaim claim;
  claim.set_owner(owner_);
  claim.set_lease_until_realtime_ns(clock_.RealtimeNs() + kClaimLeaseNs);
  // From before it is there, so that it never ends earlier than we believe.
  const uint64_t now_ns = clock_.MonotonicNs();
  const std::string text = FormatClaim(claim);
  if (const absl::Status status = volume_.CreateOnce(NameOf(number), text); !status.ok()) {
    // A try whose answer was lost, before one that found what it had made.
    const auto there = volume_.Read(NameOf(number), kClaimBytesMax);
    if (!there.ok() || *there != text) return status;
  }
  number_ = number;
  made_monotonic_ns_ = now_ns;
  return absl::OkStatus();
}

absl::Status Claim::LookAround(uint64_t own, bool remove_dead, uint64_t& newest) {
  newest = 0;
  ASSIGN_OR_RETURN(const std::vector<Volume::Entry> entries,
                   volume_.List(directory_, limits::kDeliveredFilesMax));
  const uint64_t now_ns = clock_.RealtimeNs();
  for (const Volume::Entry& entry : entries) {
    const uint64_t number = NumberOf(entry.name);
    if (number == 0) continue;
    newest = std::max(newest, number);
    if (number == own) continue;
    const auto text = volume_.Read(NameOf(number), kClaimBytesMax);
    if (absl::IsNotFound(text.status())) continue;  // just released
    v1::DeliveryClaim claim;
    const auto parsed = text.ok() ? ParseClaim(*text) : text.status();
    if (parsed.ok()) {
      claim = *parsed;
    } else {
      claim.set_owner("somebody unknown");
    }
    // Half written, or of a clock that is far ahead: by its file's time.
    if (!parsed.ok() || claim.lease_until_realtime_ns() > now_ns + kClaimLeaseNs + kClaimGraceNs) {
      claim.set_lease_until_realtime_ns(entry.modified_realtime_ns + kClaimLeaseNs);
    }
    const uint64_t until_ns = claim.lease_until_realtime_ns();
    const bool is_dead = until_ns < UINT64_MAX - kClaimGraceNs && until_ns + kClaimGraceNs < now_ns;
    if (!is_dead) {
      return Unavailable("{} is being written by {}, which has it for {} s more at the most",
                         volume_.Where(directory_), claim.owner(),
                         until_ns > now_ns ? (until_ns - now_ns) / 1'000'000'000 + 1 : 0);
    }
    if (remove_dead) volume_.Remove(NameOf(number)).IgnoreError();
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
