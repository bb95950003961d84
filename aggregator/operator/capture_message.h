// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "aggregator/certificate/certificate.h"
#include "aggregator/session/capture_update.h"
#include "aggregator/storage/storage.h"
#include "aggregator/store/capture_reader.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Converts a capture's record and totals for operators. `now_realtime_ns` is the aggregator's
// CLOCK_REALTIME. A worker of an ended capture that has reached no final state is shown as lost.
// Pure, as all functions here.
v1::Capture ToMessage(const CaptureRecord& record, const CaptureReader::Totals& totals,
                      uint64_t now_realtime_ns);

// Converts why the store refuses writes.
v1::StoreProblem ToMessage(const Storage::WriteProblem& problem);

// Makes an ended capture complete or incomplete as its certificate says, which knows more than its
// record. Does nothing for a provisional certificate or a capture that has not begun.
void SetStateBy(const Certificate& certificate, v1::Capture& message);

// Adds the streams with their currently known ranks; -1: none. Needs records from
// CaptureReader::Streams, which have the newest rank evidence.
void AddStreams(const std::vector<StreamRecord>& streams, v1::Capture& message);

// Fails with INVALID_ARGUMENT if an operator sets what shows who or what started a capture: only
// the aggregator sets it.
absl::Status CheckNoReservedFields(const v1::CaptureSpec& spec);

// Returns the requested change, unchecked.
CaptureUpdate UpdateOf(const v1::UpdateCaptureRequest& request);

}  // namespace neurontrace
