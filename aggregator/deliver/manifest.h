// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "neurontrace/v1/delivery.pb.h"

namespace neurontrace {

// The version of docs/formats/shared_volume.md that is written, and the only one that is read.
inline constexpr uint32_t kManifestVersion = 1;

// Returns the manifest as docs/formats/shared_volume.md defines it: one line for each file, numbers
// as numbers. (The JSON of protobuf writes 64-bit numbers as texts.) Pure, as all functions here.
std::string FormatManifest(const v1::DeliveryManifest& manifest);
// Returns a text that `sha256sum --check` accepts.
std::string FormatChecksums(const v1::DeliveryManifest& manifest);

// What a JSON text has outside of its strings. For a valid manifest: an object for each entry, and
// a comma before each but the first.
struct ManifestCounts {
  size_t objects = 0;
  size_t commas = 0;
};
// Counts without parsing, in one pass and without memory.
ManifestCounts CountManifest(std::string_view text);

// Returns the name of the list that has more entries than limits::kManifestEntriesMax, or nullptr.
const char* OverfullList(const v1::DeliveryManifest& manifest);

// Parses a text that anybody may have put there. Fails with DATA_LOSS if it is not a manifest of
// this version, names a file that a delivery of its capture does not write, or has more entries
// than a delivery writes (lib/trace/delivery_limits.h). As far as such a text would take much
// memory, it is refused before it is parsed. Texts in the result are safe for logs.
absl::StatusOr<v1::DeliveryManifest> ParseManifest(std::string_view text);

// Returns the content of a claim's file.
std::string FormatClaim(const v1::DeliveryClaim& claim);
// Parses any text, too. Fails with DATA_LOSS if it is not a claim: usually one that is half
// written.
absl::StatusOr<v1::DeliveryClaim> ParseClaim(std::string_view text);

}  // namespace neurontrace
