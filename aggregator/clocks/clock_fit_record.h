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

// How much evidence of one machine a fit has used. Compared between fits to find out whether
// another fit would know more or less.
struct ClockWatermark {
  HostBoot host;
  ClockEvidenceStore::Extent stored;  // in the window of the fit
  uint64_t last_raw_ns = 0;           // of the last exchange, on the machine's raw; 0: none
  friend bool operator==(const ClockWatermark&, const ClockWatermark&) = default;
};

// The algorithm, parameters and evidence of one version of a capture's clock models. Contains no
// time of its own: equal evidence gives an equal record, by which versions are compared. A plain
// value.
struct ClockFitRecord {
  bool is_final = false;
  uint32_t host_algorithm = 0;
  uint32_t device_algorithm = 0;
  std::vector<std::string> parameters;  // "name=value", those that affect the result
  RealtimeWindow window;                // of the evidence
  uint64_t chunks = 0;                  // of the capture; device clocks are fitted from them
  // Of every machine of the capture and of the reference's keeper, sorted by host.
  std::vector<ClockWatermark> evidence;
  friend bool operator==(const ClockFitRecord&, const ClockFitRecord&) = default;
};

// Returns a record with this build's algorithms and parameters and nothing else. The order of the
// parameters is always the same, so that records can be compared. Pure, as all functions here.
ClockFitRecord FitRecordOfThisBuild(const OrderClasses& order);

// Returns whether both would make the same models from the same evidence. Compares the algorithms
// and parameters only.
bool AreFittedAlike(const ClockFitRecord& a, const ClockFitRecord& b);
// Returns whether the capture itself has grown from `then` to `now`: machines, chunks, or its
// window.
bool HasMoreOfCapture(const ClockFitRecord& now, const ClockFitRecord& then);
// Return whether some machine has more evidence `now` than `then`, or less, in which case a new fit
// would know less.
bool HasMoreEvidence(const ClockFitRecord& now, const ClockFitRecord& then);
bool HasLessEvidence(const ClockFitRecord& now, const ClockFitRecord& then);

// Returns the bytes that ClockModelStore keeps as the header of a version (docs/formats/store.md).
// Equal records give equal bytes.
std::string EncodeClockFitRecord(const ClockFitRecord& record);
// Fails with INVALID_ARGUMENT for anything that encoding does not write.
absl::StatusOr<ClockFitRecord> DecodeClockFitRecord(std::string_view bytes);

}  // namespace neurontrace
