// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// Follows the verdicts of one job from judgement to judgement. A verdict begins when all judgements
// of limits::kWatchBeginSlowNs have it, or of kWatchBeginHangNs if it is a hang, and ends when all
// of limits::kWatchEndNs do not have it; a judgement that refuses its suspects decides neither.
// Verdicts are the same if their kind and the place that they name are. Used by one thread at a
// time.
class VerdictTracker {
 public:
  // What one judgement changed.
  struct Changes {
    std::vector<size_t> began;       // indexes into the report's verdicts
    std::vector<std::string> ended;  // texts of verdicts, as they were last
  };

  // Takes the next judgement, made at `now_ns` (monotonic). The texts are those of its verdicts.
  Changes Update(const InsightReport& report, std::span<const InsightCore> cores,
                 std::span<const std::string> texts, uint64_t now_ns);
  // Returns the indexes of those verdicts of the last judgement that have begun.
  const std::vector<size_t>& current() const { return current_; }
  // Verdicts that were not followed, since the start, as there were too many.
  uint64_t not_followed() const { return not_followed_; }

 private:
  struct Followed {
    std::string text;
    std::vector<uint32_t> suspects;
    uint64_t since_ns = 0;   // the first judgement in a row that has it
    uint64_t absent_ns = 0;  // time of judgements that do not have it
    bool has_begun = false;
  };
  // Decides about a verdict that a judgement, `passed_ns` after the one before, does not have.
  // Returns false if it is over.
  static bool IsKept(Followed& followed, const InsightReport& report,
                     const std::set<uint32_t>& refused, uint64_t passed_ns);

  std::map<std::string, Followed> followed_;
  std::vector<size_t> current_;
  uint64_t judged_ns_ = 0;  // the last judgement
  uint64_t not_followed_ = 0;
};

}  // namespace neurontrace
