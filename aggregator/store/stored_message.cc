// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stored_message.h"

#include "lib/wire/conversions.h"
#include "lib/wire/suspension_codec.h"

namespace neurontrace {
namespace {

constexpr int kStoredRemarkKindMax = 79;  // of any version: lib/trace/remark.h

}  // namespace

// The weakest source cannot displace evidence that this build understands.
absl::StatusOr<RankEvidence> FromStored(v1::RankEvidence& message) {
  if (message.source() > v1::RANK_SOURCE_FRAMEWORK_FILE) {
    message.set_source(v1::RANK_SOURCE_FRAMEWORK_FILE);
  }
  return FromProto(message);
}

absl::StatusOr<Remark> FromStored(v1::Remark& message) {
  const int kind = message.kind();
  if (kind < 0 || kind > kStoredRemarkKindMax) {
    return InvalidArgument("unknown remark kind {}", kind);
  }
  // A known kind, so that the conversion checks the other fields; the actual one is set afterwards.
  message.set_kind(v1::REMARK_KIND_STORE_FAULT);
  ASSIGN_OR_RETURN(Remark remark, FromProto(message));
  remark.kind = static_cast<RemarkKind>(kind);
  return remark;
}

absl::StatusOr<Loss> FromStored(v1::Loss& message) { return FromProto(message); }

absl::StatusOr<Suspension> FromStored(v1::Suspension& message) { return FromProto(message); }

}  // namespace neurontrace
