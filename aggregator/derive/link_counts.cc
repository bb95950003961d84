// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/link_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace neurontrace {
namespace {

void AddMappingWarnings(const LinkCounts& counts, std::vector<std::string>& warnings) {
  if (counts.mapped_contradicted > 0) {
    warnings.push_back(fmt::format(
        "{} of {} runtime calls that mapping files name lie in another framework operation: their "
        "arrows come from the one that they lie in",
        counts.mapped_contradicted, counts.calls_mapped));
  }
  if (counts.mapped_unseen > 0) {
    warnings.push_back(fmt::format(
        "{} of {} runtime calls that mapping files name have no operation with the sequence number "
        "before them in a framework trace",
        counts.mapped_unseen, counts.calls_mapped));
  }
  if (counts.mapped_elsewhere > 0) {
    warnings.push_back(fmt::format(
        "{} operations of mapping files are not used: it is not known which worker they are of",
        counts.mapped_elsewhere));
  }
  if (counts.mapped_forgotten > 0) {
    warnings.push_back(
        fmt::format("{} operations of mapping files are not used: there are more than are kept",
                    counts.mapped_forgotten));
  }
}

}  // namespace

std::vector<std::string> LinkCounts::Warnings() const {
  std::vector<std::string> warnings;
  if (operations_ambiguous > 0) {
    warnings.push_back(
        fmt::format("{} framework operations are not joined to the runtime: two workers of their "
                    "instance have their process id",
                    operations_ambiguous));
  }
  if (operations_own_time > 0) {
    warnings.push_back(
        fmt::format("{} framework operations are not joined to the runtime: the times of their "
                    "file count from a moment that is not known",
                    operations_own_time));
  }
  const uint64_t joined = std::min(calls, calls_joined + mapped_added);
  if (operations > 0 && joined < calls) {
    std::string text = fmt::format(
        "{} of {} runtime calls on instances with framework traces are in no framework operation",
        calls - joined, calls);
    if (calls_crossing > 0) text += fmt::format("; {} end after theirs", calls_crossing);
    if (calls_without_thread > 0) text += fmt::format("; {} name no thread", calls_without_thread);
    warnings.push_back(std::move(text));
  }
  if (operations == 0 && operations_elsewhere > 0 && calls > 0) {
    warnings.push_back(fmt::format(
        "{} framework operations belong to processes that are not workers in this capture",
        operations_elsewhere));
  }
  AddMappingWarnings(*this, warnings);
  if (operations_forgotten + chains_forgotten > 0) {
    warnings.push_back(
        fmt::format("arrows of {} framework operations and {} executions or sequences end early: "
                    "more at one time than are kept",
                    operations_forgotten, chains_forgotten));
  }
  return warnings;
}

}  // namespace neurontrace
