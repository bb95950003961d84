// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/source/neuron/decode/decoded_document.h"

namespace neurontrace {

// For tests: decodes documents with and without predictions, which must not differ in anything. One
// thread.
class PredictionComparison {
 public:
  // Returns what differs; an empty text if nothing does.
  std::string Decode(std::string_view json) {
    DecodedDocument read;
    DecodedDocument predicted;
    read.Decode(reader_, json);
    predicted.Decode(predictor_, json);
    events += predicted.outcome.events;
    predicted_events += predicted.outcome.predicted_events;
    if (read.outcome.predicted_events != 0) return "predictions that are switched off";
    if (read.outcome.events != predicted.outcome.events) return "the number of events";
    if (read.outcome.unfit_events != predicted.outcome.unfit_events) return "the unfit events";
    if (read.outcome.repaired_bytes != predicted.outcome.repaired_bytes) return "the repairs";
    if (Describe(read.outcome.fault) != Describe(predicted.outcome.fault)) {
      return Describe(predicted.outcome.fault) + " in place of " + Describe(read.outcome.fault);
    }
    if (read.unfit != predicted.unfit) return "an unfit event";
    const auto [a, b] =
        std::mismatch(read.events.begin(), read.events.end(), predicted.events.begin());
    return a == read.events.end() ? "" : "event " + std::to_string(a - read.events.begin());
  }

  uint64_t events = 0;
  uint64_t predicted_events = 0;

 private:
  static std::string Describe(const std::optional<JsonIndex::Fault>& fault) {
    return fault ? fault->what + " at " + std::to_string(fault->offset) : "no fault";
  }

  NrtEventDecoder reader_{NrtEventDecoder::Prediction::kOff};
  NrtEventDecoder predictor_{NrtEventDecoder::Prediction::kOn};
};

}  // namespace neurontrace
