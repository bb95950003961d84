// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/row_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/timeline/framework_names.h"
#include "lib/base/clean_text.h"

namespace neurontrace {

// The container is what people know; the start time distinguishes processes outside of one.
std::string DisambiguatedLabel(const std::string& label, const WorkerIdentity& worker) {
  return worker.container_id.empty()
             ? fmt::format("{}-start{}", label, worker.start_time_ticks)
             : fmt::format("{}-container {}", label, CleanText(worker.container_id, 12));
}

// An event without a thread belongs to a row for all such events of its process.
std::string ThreadName(const std::string& thread_id) {
  if (thread_id.empty()) return "events";
  const bool is_number = thread_id.find_first_not_of("-0123456789") == std::string::npos;
  return is_number ? "tid" + thread_id : thread_id;
}

std::string CoreRowName(uint64_t core) {
  return core == UINT64_MAX ? "cores-further" : fmt::format("core{}", core);
}

std::string Trimmed(const std::string& name) {
  const size_t last = name.find_last_not_of(' ');
  return last == std::string::npos ? "unnamed" : name.substr(0, last + 1);
}

// Repeated ranks count once.
std::string RanksText(std::vector<int64_t> worker_gids) {
  constexpr size_t kRangesMax = 4;
  std::sort(worker_gids.begin(), worker_gids.end());
  worker_gids.erase(std::unique(worker_gids.begin(), worker_gids.end()), worker_gids.end());
  std::string text;
  size_t ranges = 0;
  for (size_t i = 0; i < worker_gids.size();) {
    // A label is one line of a narrow column.
    if (++ranges > kRangesMax) return text + ",...";
    size_t last = i;
    while (last + 1 < worker_gids.size() && worker_gids[last + 1] - 1 == worker_gids[last]) ++last;
    text += fmt::format("{}{}", text.empty() ? "gid" : ",", worker_gids[i]);
    if (last > i) text += fmt::format("-{}", worker_gids[last]);
    i = last + 1;
  }
  return text;
}

// Events with one name and different ids are different counters in the Trace Event Format.
std::string CounterName(const TimelineRecord& record) {
  const ShapeKey* about = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kTop, "name", &about);
  std::string name = value == nullptr ? std::string(record.start().event_type)
                                      : AttributeText(*about, *value, record.names->strings);
  value = FindAttribute(record, KeyScope::kTop, "id", &about);
  if (value == nullptr) return name;
  return name + "[" + AttributeText(*about, *value, record.names->strings) + "]";
}

std::string WorkerKey(const WorkerIdentity& worker) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", worker.instance_id, worker.boot_id, worker.pid,
                     worker.start_time_ticks, worker.container_id);
}

}  // namespace neurontrace
