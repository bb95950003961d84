// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/trace/artifact.h"

// Keys and values of family `artifacts`; docs/formats/store.md has them.
namespace neurontrace {

// The first byte of a key. Reference: capture id, SHA-256 of agent id, 0, path and, where the root
// is known, 0 and root -> the reference.
// Owner: SHA-256 of the content, then the key of the reference without its first byte -> nothing.
// Forgone: as a reference -> what is not kept there, and why.
inline constexpr char kReferenceKey = 'r';
inline constexpr char kOwnerKey = 'o';
inline constexpr char kForgoneKey = 'n';

std::string ReferencePrefix(const CaptureId& capture);
std::string ForgonePrefix(const CaptureId& capture);
std::string ReferenceKey(const ArtifactReference& reference);
// Of the same place.
std::string ForgoneKey(const ArtifactReference& reference);
std::string ForgoneKey(const ArtifactForgone& forgone);
std::string OwnerPrefix(std::string_view sha256);
std::string OwnerKey(std::string_view sha256, std::string_view reference_key);

// DATA_LOSS for what is not whole or stands under another key than its own.
std::string EncodeReference(const ArtifactReference& reference);
absl::StatusOr<ArtifactReference> DecodeReference(std::string_view key, std::string_view value);
std::string EncodeForgone(const ArtifactForgone& forgone);
absl::StatusOr<ArtifactForgone> DecodeForgone(std::string_view key, std::string_view value);

// One entry of the family, for a database that is made again out of damaged files: whether it is
// whole.
bool IsArtifactEntry(std::string_view key, std::string_view value);

}  // namespace neurontrace
