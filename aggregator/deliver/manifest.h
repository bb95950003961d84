// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "neurontrace/v1/delivery.pb.h"

namespace neurontrace {

inline constexpr uint32_t kManifestVersion = 1;

// As docs/formats/shared_volume.md has it: a file a line, numbers as numbers.
std::string FormatManifest(const v1::DeliveryManifest& manifest);
// In the form of `sha256sum --check`.
std::string FormatChecksums(const v1::DeliveryManifest& manifest);

// What a JSON text has outside of its strings, at most: an object for each entry of a manifest that
// is one, and a comma before each but the first.
struct ManifestCounts {
  size_t objects = 0;
  size_t commas = 0;
};
ManifestCounts CountManifest(std::string_view text);

// The list of it that has more entries than limits::kManifestEntriesMax; nullptr where none has.
const char* OverfullList(const v1::DeliveryManifest& manifest);

// The text is hostile. DATA_LOSS for what is no manifest of this version, names a file that a
// delivery of its capture does not write, or has more entries than one writes
// (lib/trace/delivery_limits.h): so far that it would take much memory, this is seen before it is
// parsed. Words in it are made fit for logs.
absl::StatusOr<v1::DeliveryManifest> ParseManifest(std::string_view text);

std::string FormatClaim(const v1::DeliveryClaim& claim);
// Also hostile. DATA_LOSS for what is none: one that is half written, mostly.
absl::StatusOr<v1::DeliveryClaim> ParseClaim(std::string_view text);

}  // namespace neurontrace
