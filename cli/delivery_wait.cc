// SPDX-License-Identifier: Apache-2.0
#include "cli/delivery_wait.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "cli/text.h"
#include "lib/base/clean_text.h"
#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace::cli {
namespace {

constexpr uint64_t kPatienceNs = 10 * kNsPerSecond;
constexpr size_t kInstancesNamed = 8;

bool IsAwaited(const v1::CaptureWorkerStatus& worker) {
  return worker.state() != v1::CAPTURE_WORKER_STATE_COMPLETE &&
         worker.state() != v1::CAPTURE_WORKER_STATE_REFUSED &&
         worker.state() != v1::CAPTURE_WORKER_STATE_LOST;
}

std::map<std::string, uint64_t> EventsNotStored(const v1::Capture& capture) {
  std::map<std::string, uint64_t> events;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    events[worker.worker().instance_id()] +=
        SubtractSaturating(worker.events_read(), worker.events_stored());
  }
  return events;
}

}  // namespace

bool DeliveryWait::IsDue(const v1::Capture& capture) const {
  const uint64_t now_ns = capture.server_realtime_ns();
  const uint64_t stopped_ns = capture.stopped_realtime_ns();
  return capture.state() == v1::CAPTURE_STATE_STOPPING && !capture.has_store_problem() &&
         stopped_ns != 0 && now_ns >= stopped_ns + kPatienceNs &&
         (checked_ns_ == 0 || now_ns >= checked_ns_ + kPatienceNs);
}

DeliveryWait::Awaited DeliveryWait::AwaitedOf(const v1::Capture& capture) {
  Awaited awaited;
  for (const v1::AgentCertificate& agent : capture.certificate().agents()) {
    if (agent.part() != v1::AGENT_PART_RECORDING) continue;
    awaited.emplace(agent.instance_id(), !agent.connected(), agent.away_since_realtime_ns());
  }
  if (!capture.certificate().agents().empty()) return awaited;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (IsAwaited(worker)) awaited.emplace(worker.worker().instance_id(), false, 0);
  }
  return awaited;
}

std::string DeliveryWait::Report(const v1::Capture& capture) {
  checked_ns_ = capture.server_realtime_ns();
  Awaited awaited = AwaitedOf(capture);
  if (awaited.empty() || awaited == reported_) return "";
  const std::map<std::string, uint64_t> not_stored = EventsNotStored(capture);
  std::string text = fmt::format("stopped {} ago, waiting for the last data of {}: ",
                                 FormatDuration(SubtractSaturating(capture.server_realtime_ns(),
                                                                   capture.stopped_realtime_ns())),
                                 FormatCounted(awaited.size(), "instance"));
  size_t named = 0;
  for (const auto& [instance, is_away, since_ns] : awaited) {
    if (named == kInstancesNamed) {
      text += fmt::format(" and {} more", awaited.size() - named);
      break;
    }
    const auto events = not_stored.find(instance);
    const uint64_t count = events == not_stored.end() ? 0 : events->second;
    text += fmt::format("{}{} ({}{} not stored)", named++ == 0 ? "" : ", ",
                        CleanText(instance, limits::kIdentityStringBytesMax),
                        is_away ? fmt::format("disconnected since {}, ", FormatTime(since_ns)) : "",
                        FormatCounted(count, "event"));
  }
  reported_ = std::move(awaited);
  return text;
}

}  // namespace neurontrace::cli
