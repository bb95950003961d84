// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/store/clock_evidence_store.h"

// Keys of the family `clock_observations` and rows of the epochs of the reference timescale, as
// docs/formats/store.md has them. Pure functions.
namespace neurontrace {

// Instance id and boot id, each with its length (u16) before it, the time when the last of it was
// measured, a checksum.
inline constexpr size_t kEvidenceKeyTailBytes = 8 + 4;
std::string EvidencePrefix(const HostBoot& host);
std::string EvidenceAt(const HostBoot& host, uint64_t measured_realtime_ns);
std::string EvidenceKey(const ClockEvidenceBatch& batch);
// nullopt for a key of another form.
std::optional<HostBoot> HostOfEvidenceKey(std::string_view key);
// The key has a tail.
uint64_t MeasuredOfEvidenceKey(std::string_view key);
// Whether a row can be read.
bool IsClockEvidence(std::string_view key, std::string_view value);

inline constexpr std::string_view kEpochKeyPrefix = "reference_epoch/";
std::string EpochKey(uint32_t number);
std::string EncodeEpoch(const ReferenceEpoch& epoch);
// DATA_LOSS for anything that encoding does not write.
absl::StatusOr<ReferenceEpoch> DecodeEpoch(std::string_view value);
// The value of an epoch's row as it can be read. Of one that cannot, a row that keeps its number
// taken, as evidence may name it, and that no reference timescale continues with; nullopt where the
// key has no number.
std::optional<std::string> SalvageEpoch(std::string_view key, std::string_view value);

}  // namespace neurontrace
