// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/remark.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/worker_info.h"
#include "neurontrace/v1/agent_gateway.pb.h"
#include "neurontrace/v1/chunk.pb.h"
#include "neurontrace/v1/vocabulary.pb.h"

// Converts between messages and the values of lib/trace/. Pure functions, any thread.
//
// ToProto cannot fail. If the enums of a value are known, FromProto accepts the result: text that
// is not UTF-8 is repaired, and lists and texts are cut at their limits. A CaptureSpec is not cut,
// so that the receiver refuses what is too long.
//
// FromProto checks everything that a peer sent (limits, enums, lengths) and fails with
// INVALID_ARGUMENT, naming the field. Accepted values are safe to store, to log and to compare.
namespace neurontrace {

// To messages.
void ToProto(const WorkerIdentity& value, v1::WorkerIdentity* message);
void ToProto(const StreamIdentity& value, v1::StreamIdentity* message);
void ToProto(const RankEvidence& value, v1::RankEvidence* message);
void ToProto(const Loss& value, v1::Loss* message);
void ToProto(const Remark& value, v1::Remark* message);
void ToProto(const KeyValue& value, v1::KeyValue* message);
void ToProto(const CaptureSpec& value, v1::CaptureSpec* message);
void ToProto(const CaptureBegin& value, v1::CaptureBegin* message);
void ToProto(const WorkerInfo& value, v1::WorkerInventory* message);
void ToProto(const CaptureWorkerStatus& value, v1::CaptureWorkerStatus* message);
void ToProto(const StreamCursor& value, v1::StreamCursor* message);
void ToProto(const ChunkHeader& value, v1::ChunkHeader* message);
void ToProto(const PrecedingGap& value, v1::GoneBefore* message);

// From messages, which are not trusted.
absl::StatusOr<WorkerIdentity> FromProto(const v1::WorkerIdentity& message);
absl::StatusOr<StreamIdentity> FromProto(const v1::StreamIdentity& message);
absl::StatusOr<RankEvidence> FromProto(const v1::RankEvidence& message);
absl::StatusOr<Loss> FromProto(const v1::Loss& message);
absl::StatusOr<Remark> FromProto(const v1::Remark& message);
absl::StatusOr<KeyValue> FromProto(const v1::KeyValue& message);
absl::StatusOr<CaptureSpec> FromProto(const v1::CaptureSpec& message);
absl::StatusOr<CaptureBegin> FromProto(const v1::CaptureBegin& message);
absl::StatusOr<WorkerInfo> FromProto(const v1::WorkerInventory& message);
absl::StatusOr<CaptureWorkerStatus> FromProto(const v1::CaptureWorkerStatus& message);
absl::StatusOr<StreamCursor> FromProto(const v1::StreamCursor& message);
absl::StatusOr<ChunkHeader> FromProto(const v1::ChunkHeader& message);
absl::StatusOr<PrecedingGap> FromProto(const v1::GoneBefore& message);

}  // namespace neurontrace
