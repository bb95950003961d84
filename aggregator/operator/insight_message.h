// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_report.h"
#include "neurontrace/v1/insight.pb.h"

// Converts the answers of the insight rule for operators. Pure functions.
namespace neurontrace {

// Cores that a verdict or a refusal names at most; further ones are counted.
inline constexpr size_t kInsightCoresNamed = 64;

// A capture that a command exports a part from.
struct ExportedCapture {
  std::string id;  // empty: none, as of a running watch, and verdicts have no command
  // Reference time of its first event, from which the command counts. 0: that may still change, so
  // that the command has epoch nanoseconds.
  uint64_t first_event_ns = 0;
};

// Returns the report as a message, with each verdict's text and the command that exports what shows
// it. Times of the report are reference time, and `cores` are those that it was made for. The
// window and the warnings of the message are left to the caller.
v1::InsightReport ToMessage(const InsightReport& report, std::span<const InsightCore> cores,
                            const ExportedCapture& capture);

}  // namespace neurontrace
