// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/claim.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "aggregator/deliver/manifest.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Real claims have a few hundred bytes. A larger file counts as unreadable.
constexpr size_t kClaimBytesMax = 4096;
constexpr std::string_view kClaimBeginning = "claim.";
constexpr std::string_view kClaimEnding = ".json";

// Returns 0 for a name that is not a claim's.
uint64_t NumberOf(std::string_view name) {
  if (!name.starts_with(kClaimBeginning) || !name.ends_with(kClaimEnding)) return 0;
  name.remove_prefix(kClaimBeginning.size());
  if (name.size() <= kClaimEnding.size()) return 0;
  name.remove_suffix(kClaimEnding.size());
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  // The highest numbers are never reached by counting. A file planted with one of them is ignored,
  // because it would make the next number overflow.
  const bool is_number = error == std::errc() && rest == name.data() + name.size();
  return is_number && number < UINT64_MAX / 2 ? number : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Claim>> Claim::Take(Volume& volume, const std::string& directory,
                                                   const ClaimOwner& owner, const Clock& clock) {
  std::unique_ptr<Claim> claim(new Claim(volume, directory, owner, clock));
  ASSIGN_OR_RETURN(Others others, claim->ReadClaims(false));
  if (!others.holder.empty()) return Unavailable("{}", others.holder);
  const absl::Status made = claim->Make(others.newest + 1);
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  // Looks again: two writers that found a dead claim at the same moment may both have made one.
  // Whoever sees another's claim in force gives up.
  ASSIGN_OR_RETURN(others, claim->ReadClaims(made.ok()));
  if (!others.holder.empty()) return Unavailable("{}", others.holder);
  if (made.ok()) return claim;
  return Unavailable("{} is being claimed by another export; try again", volume.Where(directory));
}

Claim::~Claim() {
  if (number_ == 0 || AgeNs() >= kClaimLeaseNs) return;
  // If this fails, the lease ends by itself.
  volume_.Remove(NameOf(number_)).IgnoreError();
}

absl::Status Claim::Keep() {
  if (AgeNs() < kClaimRenewNs) return absl::OkStatus();
  // Another writer may have taken over and even have finished since, so that its claim is gone
  // again.
  if (AgeNs() >= kClaimLeaseNs) return Lost("the claim was not renewed in time");
  const uint64_t last = number_;
  const uint64_t last_until_ns = made_monotonic_ns_ + kClaimLeaseNs;
  const absl::Status made = Make(last + 1);
  if (absl::IsAlreadyExists(made)) return Lost(std::string(made.message()));
  // A failed renewal is no loss yet: the present lease lasts long enough for another attempt.
  if (!made.ok()) {
    const bool is_time_for_another_try = AgeNs() + kVolumeOperationNs < kClaimLeaseNs;
    return is_time_for_another_try ? absl::OkStatus() : made;
  }
  if (clock_.MonotonicNs() >= last_until_ns) return Lost("the claim was renewed too late");
  // If this fails, the old claim's lease ends by itself.
  volume_.Remove(NameOf(last)).IgnoreError();
  ASSIGN_OR_RETURN(const Others others, ReadClaims(false));
  return others.holder.empty() ? absl::OkStatus() : Lost(others.holder);
}

absl::Status Claim::Lost(const std::string& why) const {
  return absl::AbortedError(
      fmt::format("this export may no longer write {}: {}", volume_.Where(directory_), why));
}

std::string Claim::NameOf(uint64_t number) const {
  return fmt::format("{}/{}{}{}", directory_, kClaimBeginning, number, kClaimEnding);
}

absl::Status Claim::Make(uint64_t number) {
  v1::DeliveryClaim claim;
  claim.set_owner(owner_.name);
  claim.set_lock(owner_.lock);
  claim.set_run(owner_.run);
  claim.set_lease_until_realtime_ns(clock_.RealtimeNs() + kClaimLeaseNs);
  // Read before the file exists, so that the lease never ends earlier than this object believes.
  const uint64_t now_ns = clock_.MonotonicNs();
  const std::string text = FormatClaim(claim);
  if (absl::Status status = volume_.CreateOnce(NameOf(number), text); !status.ok()) {
    // An attempt may succeed although its answer was lost; the retry then finds its own file.
    const auto there = volume_.Read(NameOf(number), kClaimBytesMax);
    if (!there.ok() || *there != text) return status;
  }
  number_ = number;
  made_monotonic_ns_ = now_ns;
  return absl::OkStatus();
}

bool Claim::IsOwnerDead(const v1::DeliveryClaim& claim, uint64_t now_ns) const {
  if (!owner_.lock.empty() && claim.lock() == owner_.lock && claim.run() != owner_.run) return true;
  const uint64_t until_ns = claim.lease_until_realtime_ns();
  return until_ns < UINT64_MAX - kClaimGraceNs && until_ns + kClaimGraceNs < now_ns;
}

std::string Claim::DescribeHolder(const v1::DeliveryClaim& claim, const std::string& file,
                                  uint64_t now_ns) const {
  const std::string who =
      fmt::format("{} is being written by {}", volume_.Where(directory_), claim.owner());
  const uint64_t until_ns = claim.lease_until_realtime_ns();
  const uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  // The time of the file is in the future too, so that no clock tells when the lease ends.
  if (left_ns > kClaimLeaseNs + kClaimGraceNs) {
    return fmt::format(
        "{}, and the time of the claim is in the future; if nothing writes there, remove {}", who,
        file);
  }
  return fmt::format("{}; its claim expires within {} s", who,
                     left_ns == 0 ? 0 : left_ns / 1'000'000'000 + 1);
}

absl::StatusOr<Claim::Others> Claim::ReadClaims(bool remove_dead) {
  Others others;
  ASSIGN_OR_RETURN(const std::vector<Volume::Entry> entries,
                   volume_.List(directory_, limits::kDeliveredFilesMax));
  const uint64_t now_ns = clock_.RealtimeNs();
  for (const Volume::Entry& entry : entries) {
    const uint64_t number = NumberOf(entry.name);
    if (number == 0) continue;
    others.newest = std::max(others.newest, number);
    if (number == number_) continue;
    const auto text = volume_.Read(NameOf(number), kClaimBytesMax);
    if (absl::IsNotFound(text.status())) continue;  // just released
    // An unreadable claim must not be taken for a dead one.
    if (absl::IsUnavailable(text.status())) return text.status();
    v1::DeliveryClaim claim;
    const auto parsed = text.ok() ? ParseClaim(*text) : text.status();
    if (parsed.ok()) {
      claim = *parsed;
    } else {
      claim.set_owner("an unknown writer");
    }
    // A claim that is half written, or of a clock far ahead, is judged by its file's time.
    if (!parsed.ok() || claim.lease_until_realtime_ns() > now_ns + kClaimLeaseNs + kClaimGraceNs) {
      claim.set_lease_until_realtime_ns(AddSaturating(entry.modified_realtime_ns, kClaimLeaseNs));
    }
    if (!IsOwnerDead(claim, now_ns)) {
      others.holder = DescribeHolder(claim, volume_.Where(NameOf(number)), now_ns);
      return others;
    }
    if (remove_dead) volume_.Remove(NameOf(number)).IgnoreError();
  }
  return others;
}

}  // namespace neurontrace
