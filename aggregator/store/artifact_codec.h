// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/trace/artifact.h"

// Keys and values of family `artifacts`; docs/formats/store.md has them.
namespace neurontrace {

// First bytes of the keys, one for each kind of entry. A reference has the capture id and the
// SHA-256 of agent id, a zero byte, the artifact's path and, if the root is known, a zero byte and
// the root. An owner has the SHA-256 of a content and then a reference's key without its first
// byte; its value is empty. A note of a forgone artifact has the same key as a reference but for
// the first byte, and says what the capture does not have, and why.
inline constexpr char kReferenceKey = 'r';
inline constexpr char kOwnerKey = 'o';
inline constexpr char kForgoneKey = 'n';

// Prefixes of all references and all notes of one capture. The capture id is in front so that a
// capture's entries lie together and are deleted with one scan.
std::string ReferencePrefix(const CaptureId& capture);
std::string SkippedPrefix(const CaptureId& capture);
// Returns the key of a reference. It depends on the place of the artifact only, not on its content,
// so that a changed file replaces the reference to its older content.
std::string ReferenceKey(const ArtifactReference& reference);
// Returns the key of the note about the same place as the reference.
std::string ForgoneKey(const ArtifactReference& reference);
// Returns the key of the note itself.
std::string ForgoneKey(const ArtifactForgone& forgone);
// Returns the prefix of the owner entries of one content: while any key has it, the content is
// referred to.
std::string OwnerPrefix(std::string_view sha256);
std::string OwnerKey(std::string_view sha256, std::string_view reference_key);

// Encode and decode the values, which are StoredArtifact messages. Decoding fails with DATA_LOSS if
// the bytes are no such message, a field is out of its limits, or the key is not the one that the
// value belongs under.
std::string EncodeReference(const ArtifactReference& reference);
absl::StatusOr<ArtifactReference> DecodeReference(std::string_view key, std::string_view value);
std::string EncodeForgone(const ArtifactForgone& forgone);
absl::StatusOr<ArtifactForgone> DecodeForgone(std::string_view key, std::string_view value);

// Returns whether an entry of the family is whole and worth keeping when a database is rebuilt out
// of damaged files. Owner entries are not: ArtifactStore::Open makes them again from the
// references.
bool IsArtifactEntry(std::string_view key, std::string_view value);

}  // namespace neurontrace
