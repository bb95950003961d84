// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/clocks/order_classes.h"
#include "aggregator/store/clock_evidence_store.h"

namespace neurontrace {

// Up to where the evidence of one machine went into a fit.
struct ClockWatermark {
  HostBoot host;
  ClockEvidenceStore::Extent stored;  // in the fit's window
  uint64_t last_raw_ns = 0;  // of the last exchange, by the machine's raw; 0: there is none
  friend bool operator==(const ClockWatermark&, const ClockWatermark&) = default;
};

// With what, and out of what, a version of a capture's clock models was fitted. A plain value. Says
// nothing of when: equal evidence gives an equal record.
struct ClockFitRecord {
  bool is_final = false;
  uint32_t host_algorithm = 0;
  uint32_t device_algorithm = 0;
  std::vector<std::string> parameters;  // "name=value", what of the fits can be set
  RealtimeWindow window;                // of evidence
  uint64_t chunks = 0;                  // of the capture, out of which device clocks are fitted
  // Of every machine of the capture and of the reference's keeper, by host.
  std::vector<ClockWatermark> evidence;
  friend bool operator==(const ClockFitRecord&, const ClockFitRecord&) = default;
};

// Algorithms and parameters of this build, told to compare so, and nothing else.
ClockFitRecord FitRecordOfThisBuild(const OrderClasses& order);

// Whether both would make the same models of the same evidence.
bool AreFittedAlike(const ClockFitRecord& a, const ClockFitRecord& b);
// Of two records of one capture: what the capture itself has at `now` and had not `then`: machines,
// chunks, another stretch of time.
bool HasMoreOfCapture(const ClockFitRecord& now, const ClockFitRecord& then);
// Whether there is more evidence of some machine `now` than `then`; less of one: a fit would know
// less.
bool HasMoreEvidence(const ClockFitRecord& now, const ClockFitRecord& then);
bool HasLessEvidence(const ClockFitRecord& now, const ClockFitRecord& then);

std::string EncodeClockFitRecord(const ClockFitRecord& record);
// INVALID_ARGUMENT for anything that encoding does not write.
absl::StatusOr<ClockFitRecord> DecodeClockFitRecord(std::string_view bytes);

}  // namespace neurontrace
