// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/preview_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "aggregator/session/capture_quota.h"
#include "aggregator/session/capture_request.h"
#include "lib/base/time_units.h"
#include "lib/trace/capture_limits.h"

namespace neurontrace {
namespace {

// Returns how long the preview counted: as planned, or until it was stopped.
uint64_t MeasuredNs(const CaptureRecord& record) {
  const uint64_t begun_ns = record.armed_realtime_ns;
  if (begun_ns == 0 || record.stopped_realtime_ns <= begun_ns) return 0;
  return std::min(record.stopped_realtime_ns - begun_ns, limits::kPreviewMeasureNs);
}

// Returns how much comes in `ns` at this rate, limited to the range of the result.
uint64_t Times(double per_second, uint64_t ns) {
  const double product = per_second * static_cast<double>(ns) * 1e-9;
  // Just below 2^64; converting a larger double would be undefined.
  return product < 1.8e19 ? static_cast<uint64_t>(product) : UINT64_MAX;
}

}  // namespace

// Assumes that the capture will run at the measured rates.
v1::CapturePreview ToPreview(const CaptureRecord& record, const PreviewRoom& room) {
  v1::CapturePreview preview;
  const uint64_t measured_ns = MeasuredNs(record);
  const double seconds = static_cast<double>(measured_ns) * 1e-9;
  preview.set_measured_ns(measured_ns);
  preview.set_duration_ns(record.spec.timing.duration_ns);
  preview.set_store_free_bytes(room.store_free_bytes);
  preview.set_quota_left_bytes(room.quota_left_bytes);
  for (const std::string& objection : room.objections) preview.add_objections(objection);
  if (measured_ns == 0) return preview;

  uint64_t events = 0;
  uint64_t bytes = 0;
  std::map<std::string, uint64_t> bytes_of;  // by instance
  for (const CaptureWorkerStatus& status : record.workers) {
    events = AddSaturating(events, status.events_read);
    bytes = AddSaturating(bytes, status.bytes_read);
    uint64_t& of_instance = bytes_of[status.worker.instance_id];
    of_instance = AddSaturating(of_instance, status.bytes_read);
  }
  preview.set_events_per_second(static_cast<double>(events) / seconds);
  preview.set_bytes_per_second(static_cast<double>(bytes) / seconds);
  const auto most = std::max_element(bytes_of.begin(), bytes_of.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  if (most != bytes_of.end()) {
    preview.set_most_bytes_per_second(static_cast<double>(most->second) / seconds);
    preview.set_most_instance_id(most->first);
  }
  // Without a duration only the rates can be given.
  if (record.spec.timing.duration_ns == 0) return preview;
  preview.set_events(Times(preview.events_per_second(), record.spec.timing.duration_ns));
  uint64_t expected = Times(preview.bytes_per_second(), record.spec.timing.duration_ns);
  if (record.spec.budget.stored_bytes_max > 0)
    expected = std::min(expected, record.spec.budget.stored_bytes_max);
  preview.set_bytes(expected);
  if (room.store_free_bytes > 0 && expected > room.store_free_bytes) {
    preview.add_objections(fmt::format("{} do not fit: the store's disk has {} free",
                                       BytesText(expected), BytesText(room.store_free_bytes)));
  }
  // An objection says already that the capture would be refused.
  if (room.objections.empty() && expected > room.quota_left_bytes) {
    preview.add_objections(
        fmt::format("the capture would stop early: {} are expected, but only {} may be stored",
                    BytesText(expected), BytesText(room.quota_left_bytes)));
  }
  return preview;
}

// Asks with the jobs of the workers that are selected now, as the real capture would be asked.
PreviewRoom FindPreviewRoom(StoreQuota& quota, const AgentRegistry& registry,
                            const CaptureRecord& preview) {
  PreviewRoom room;
  room.store_free_bytes = quota.FreeBytes();
  CaptureSpec spec = preview.spec;
  // A preview stores nothing and would be admitted under any quota.
  spec.mode = CaptureMode::kStream;
  const auto allowance = quota.Admit(spec, SelectedJobs(spec, registry), std::nullopt);
  if (allowance.ok()) {
    room.quota_left_bytes = allowance->bytes;
  } else {
    room.quota_left_bytes = 0;
    room.objections.emplace_back(allowance.status().message());
  }
  return room;
}

}  // namespace neurontrace
