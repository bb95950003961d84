// SPDX-License-Identifier: Apache-2.0
#include "tests/insight_sim/events_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace neurontrace {
namespace {

constexpr const char* kClasses[] = {"execute",    "prepare",      "post",           "run",
                                    "collective", "host-barrier", "device-barrier", "transfer-io",
                                    "memory",     "error"};
constexpr InsightClass kClassOf[] = {InsightClass::kExecute,       InsightClass::kPrepare,
                                     InsightClass::kPost,          InsightClass::kRun,
                                     InsightClass::kCollective,    InsightClass::kHostBarrier,
                                     InsightClass::kDeviceBarrier, InsightClass::kTransferIo,
                                     InsightClass::kMemory,        InsightClass::kError};

// Reads the members of a line behind its first word into the file. Returns what is wrong, or
// nothing.
std::string ReadCore(std::istringstream& line, EventsFile& file) {
  InsightCore core;
  if (!(line >> core.job >> core.instance_id >> core.process >> core.worker_gid >> core.nc_idx))
    return "expected: core JOB INSTANCE PROCESS WORKER_GID NC_IDX";
  if (file.cores.size() == EventsFile::kCoresMax) return "too many cores";
  file.cores.push_back(std::move(core));
  return "";
}

std::string ReadModel(std::istringstream& line, EventsFile& file) {
  std::pair<uint64_t, std::string> model;
  if (!(line >> model.first >> model.second)) return "expected: model NUMBER NAME";
  if (file.models.size() == EventsFile::kCoresMax) return "too many models";
  file.models.push_back(std::move(model));
  return "";
}

std::string ReadEvent(std::istringstream& line, EventsFile& file) {
  InsightEvent event;
  std::string kind;
  std::string open;
  if (!(line >> event.core >> kind >> event.start_ns >> event.end_ns >> event.exec_id >>
        event.op_id >> event.model >> event.group))
    return "expected: event CORE CLASS START_NS END_NS EXEC_ID OP_ID MODEL GROUP [open]";
  const auto* known = std::find(std::begin(kClasses), std::end(kClasses), kind);
  if (known == std::end(kClasses)) return fmt::format("unknown class '{}'", kind);
  event.kind = kClassOf[known - std::begin(kClasses)];
  if (event.core >= file.cores.size()) return fmt::format("unknown core {}", event.core);
  if (event.end_ns < event.start_ns) return "ends before it starts";
  event.is_open = line >> open && open == "open";
  if (file.events.size() == EventsFile::kEventsMax) return "too many events";
  file.events.push_back(event);
  return "";
}

}  // namespace

absl::StatusOr<EventsFile> ReadEventsFile(std::istream& in) {
  EventsFile file;
  std::string text;
  for (size_t number = 1; std::getline(in, text); ++number) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word.empty() || word.front() == '#') continue;
    std::string wrong = "unknown word";
    if (word == "core") wrong = ReadCore(line, file);
    if (word == "model") wrong = ReadModel(line, file);
    if (word == "event") wrong = ReadEvent(line, file);
    if (!wrong.empty())
      return absl::InvalidArgumentError(fmt::format("line {}: {}", number, wrong));
  }
  return file;
}

}  // namespace neurontrace
