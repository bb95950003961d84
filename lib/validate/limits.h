// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The memory that a trace may make the validator hold, whatever the size of the file. Beyond a
// limit the file is still read, further content is not checked, and a finding of TraceCheck::kLimit
// reports it.
namespace neurontrace::validate_limits {

// Of one packet or message. A small packet may have many bytes after uncompressing.
inline constexpr size_t kPacketBytesMax = size_t{64} << 20;    // larger ones are skipped
inline constexpr size_t kInflatedBytesMax = size_t{64} << 20;  // of one packet of packets
inline constexpr size_t kFieldsMax = size_t{1} << 20;          // of one message

// Of the whole file.
inline constexpr size_t kTracksMax = size_t{1} << 20;
inline constexpr size_t kSequencesMax = size_t{1} << 16;
inline constexpr size_t kClocksMax = size_t{1} << 14;
inline constexpr size_t kTextsMax = size_t{4} << 20;  // interned at one time, over all sequences
inline constexpr size_t kOpenSlicesMax = size_t{4} << 20;
inline constexpr size_t kFlowPointsMax = size_t{8} << 20;

inline constexpr size_t kCategoriesBytesMax = size_t{64} << 10;  // of one event's names together

// Of what findings and reports keep.
inline constexpr size_t kFindingsPerCheckMax = 10;  // kept; all are counted
inline constexpr size_t kNameBytesMax = 200;        // kept of the name of a track, slice or text

// Limits of Perfetto itself, beyond which it drops content or advises against it
// (docs/formats/validate.md).
inline constexpr size_t kFormatPacketBytesMax = (size_t{1} << 28) - 1;  // of protozero's writers
inline constexpr size_t kDepthMax = 512;
inline constexpr size_t kAncestorsMax = 100;
inline constexpr size_t kExtraCountersMax = 8;
inline constexpr size_t kCompressedBytesAdvised = size_t{512} << 10;

}  // namespace neurontrace::validate_limits
