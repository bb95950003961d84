// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/store/clock_evidence_store.h"

// Keys of family `clock_observations`, and keys and values of the epochs of the reference timescale
// in family `meta`; docs/formats/store.md lists the bytes. Pure functions, any thread.
namespace neurontrace {

// A key has instance id and boot id, each after its length (u16), the time at which the last of the
// batch was measured (u64, ns) and the CRC-32C of the value. The checksum makes keys of two batches
// with one time differ, while the same batch received twice has the same key.
inline constexpr size_t kEvidenceKeyTailBytes = 8 + 4;
// Returns the prefix of all keys of one host and boot.
std::string EvidencePrefix(const HostBoot& host);
// Returns the beginning of a key up to its time: where to seek for evidence from that time on.
std::string EvidenceAt(const HostBoot& host, uint64_t measured_realtime_ns);
// Returns the whole key of a batch.
std::string EvidenceKey(const ClockEvidenceBatch& batch);
// Returns nullopt for a key of another form.
std::optional<HostBoot> HostOfEvidenceKey(std::string_view key);
// Returns the time in a key, in ns. Requires a key of at least kEvidenceKeyTailBytes.
uint64_t MeasuredOfEvidenceKey(std::string_view key);
// Returns whether key and value of a row can be decoded.
bool IsClockEvidence(std::string_view key, std::string_view value);

// Prefix of the epochs' keys in family `meta`; the number follows as a big-endian u32.
inline constexpr std::string_view kEpochKeyPrefix = "reference_epoch/";
std::string EpochKey(uint32_t number);
std::string EncodeEpoch(const ReferenceEpoch& epoch);
// Fails with DATA_LOSS for anything that encoding does not write.
absl::StatusOr<ReferenceEpoch> DecodeEpoch(std::string_view value);
// Returns the value to keep of an epoch's row in a rebuilt database. A value that cannot be decoded
// is replaced by one with only its number: evidence may name that number, so no later epoch may
// reuse it, and without an origin no timescale continues with it. Returns nullopt if the key has no
// number.
std::optional<std::string> SalvageEpoch(std::string_view key, std::string_view value);

}  // namespace neurontrace
