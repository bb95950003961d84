// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/clock_model_store.h"

namespace neurontrace {

class Database;

// What a repair of a store found to be lost of clocks. A plain value.
struct ClockDamage {
  // Of a host; of any where it is not known which.
  struct Evidence {
    std::optional<HostBoot> host;
    RealtimeWindow window;
  };
  std::vector<Evidence> lost;
  bool models_lost = false;
  bool writes_lost = false;  // some, of whatever: a log lacks a part

  bool any() const { return !lost.empty() || models_lost || writes_lost; }
};

// What can have stood between two keys of evidence; an empty one is not known. Pure.
ClockDamage::Evidence LostBetween(std::string_view before, std::string_view after);

// Captures whose clocks have no final models still need evidence. Where it is lost, or lost with
// their models, the record of a stream of each host gets a remark, so that their certificates have
// a finding; where only writes of a log are lost, which need not be evidence, captures get a
// warning. `notes` gets a sentence.
absl::Status RememberClockDamage(Database& database, const ClockDamage& damage,
                                 const AreClocksFinal& are_final, std::vector<std::string>& notes);

}  // namespace neurontrace
