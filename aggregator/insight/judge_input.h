// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/insight/core_history.h"
#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// What the judges read: one entry of each for every core. A view; nothing is owned.
struct JudgeInput {
  std::span<const InsightCore> cores;
  std::span<const CoreHistory* const> histories;
  std::span<const CoreCondition> conditions;
  const absl::flat_hash_map<uint32_t, std::string>& model_names;  // by FoldModel

  // The model's name, "model 0x1a2b3c4d" without a name, or "" for 0.
  std::string ModelName(uint32_t model) const;
};

// Why a core is refused whose stream may not be alive.
inline constexpr std::string_view kSilentText =
    "Nothing arrives from it, and nobody knows whether its stream is alive; check its agent's "
    "connection.";

// Collects what is not judged: one refusal for each reason and text, with all its cores. Used by
// one thread at a time.
class RefusalList {
 public:
  struct Detail {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    uint64_t count = 0;
  };

  explicit RefusalList(size_t cores) : is_refused_(cores, false) {}

  // The core is no suspect, and no peer of others.
  void Add(RefusalReason reason, uint32_t core, std::string_view missing, Detail detail);
  void Add(RefusalReason reason, uint32_t core, std::string_view missing) {
    Add(reason, core, missing, {});
  }
  // Concerns no core in particular.
  void AddGeneral(RefusalReason reason, std::string_view missing, uint64_t count);

  // Takes back what was said about these cores for this reason. They stay refused in this
  // judgement.
  void Withdraw(RefusalReason reason, const std::vector<uint32_t>& cores);

  bool IsRefused(uint32_t core) const { return is_refused_[core]; }
  // Those with the most cores first.
  std::vector<Refusal> Finish();

 private:
  Refusal& Find(RefusalReason reason, std::string_view missing);

  std::vector<Refusal> refusals_;
  std::vector<bool> is_refused_;
};

}  // namespace neurontrace
