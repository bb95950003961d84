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

// What a repair of a store found to be lost of clock evidence and clock models. A plain value.
struct ClockDamage {
  // Lost evidence of one host, or of an unknown one, measured within a window.
  struct Evidence {
    std::optional<HostBoot> host;
    RealtimeWindow window;
  };
  std::vector<Evidence> lost;
  bool models_lost = false;  // some clock models could not be read
  bool writes_lost = false;  // a part of the log is gone, with writes of any family

  bool any() const { return !lost.empty() || models_lost || writes_lost; }
};

// Returns what may have been lost between two readable keys of family `clock_observations`. An
// empty or malformed key, or keys of two hosts, give an unknown host and the whole window. Pure.
ClockDamage::Evidence LostBetween(std::string_view before, std::string_view after);

// Records the damage where it matters: in captures without final models, which still need evidence.
// If evidence is lost, or was pruned while the models are lost, a stream record of each host gets a
// remark, which is a finding of the certificate. If only writes of the log are lost, which need not
// have been evidence, the capture gets a warning.
//
// Adds a sentence to `notes` if any capture is concerned. Writes without sync: the caller flushes.
absl::Status RememberClockDamage(Database& database, const ClockDamage& damage,
                                 const AreClocksFinal& are_final, std::vector<std::string>& notes);

}  // namespace neurontrace
