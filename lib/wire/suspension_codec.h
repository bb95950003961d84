// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/suspension.h"
#include "neurontrace/v1/chunk.pb.h"
#include "neurontrace/v1/vocabulary.pb.h"

// Converts suspensions between messages and values, as lib/wire/conversions.h does for the rest.
// Pure functions, any thread.
namespace neurontrace {

void ToProto(const Suspension& value, v1::Suspension* message);

// Fails with INVALID_ARGUMENT, naming the field, if the id has neither 0 nor 16 bytes, if there is
// no begin, or if the end is before the begin. An id of zeros is "unknown".
absl::StatusOr<Suspension> FromProto(const v1::Suspension& message);

// Appends the suspensions of a chunk: at most limits::kSuspensionsPerChunkMax, and only valid ones,
// so that SuspensionsOf accepts them.
void AddSuspensions(const std::vector<Suspension>& values,
                    google::protobuf::RepeatedPtrField<v1::Suspension>* messages);

// Returns the suspensions of a header. Fails with INVALID_ARGUMENT, naming the field, if there are
// too many, if one is refused by FromProto, if the stream is not of a worker, or in a canary.
absl::StatusOr<std::vector<Suspension>> SuspensionsOf(const v1::ChunkHeader& header);

}  // namespace neurontrace
