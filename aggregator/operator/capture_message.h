// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/certificate/certificate.h"
#include "aggregator/store/capture_reader.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// What operators are told about a capture. Pure functions.
v1::Capture ToMessage(const CaptureRecord& record, const CaptureReader::Totals& totals,
                      uint64_t now_realtime_ns);

// A capture that has ended is complete for operators only if its certificate says so.
void SetStateBy(const Certificate& certificate, v1::Capture& message);

// Adds the streams, with the ranks that are known of them now.
void AddStreams(const std::vector<StreamRecord>& streams, v1::Capture& message);

}  // namespace neurontrace
