// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_report.h"

#include "base/status.h"

namespace neurontrace {
namespace {

double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1000; }

std::string WordsOf(CausalClass kind, const CausalClassReport& report) {
  std::string words = fmt::format("{}: {} of {} show an effect before its cause",
                                  CausalClassName(kind), report.violated_before, report.instances);
  if (report.violated_before > 0) {
    words += fmt::format(", by up to {:.3f} us", Microseconds(report.worst_before_ns));
  }
  if (report.beyond_bounds > 0) {
    words +=
        fmt::format(", {} of them by more than the clocks' bounds explain", report.beyond_bounds);
  }
  if (report.mode == CausalMode::kCheck) return words + "; only checked";
  if (report.distrusted) return words + "; not trusted, and only checked";
  words += fmt::format("; with shifted clocks {}", report.violated_after);
  if (report.violated_after > 0) {
    words += fmt::format(", by up to {:.3f} us", Microseconds(report.worst_after_ns));
  }
  if (report.rejected > 0) words += fmt::format("; {} left out as contradictions", report.rejected);
  return words;
}

}  // namespace

std::vector<std::string> CausalReport::Words() const {
  std::vector<std::string> words;
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].instances == 0) continue;
    words.push_back(WordsOf(static_cast<CausalClass>(i), classes[i]));
  }
  if (largest_shift_ns > 0) {
    words.push_back(fmt::format("shifted by up to {:.3f} us ({})",
                                Microseconds(static_cast<int64_t>(largest_shift_ns)),
                                largest_shift_clock));
  }
  return words;
}

}  // namespace neurontrace
