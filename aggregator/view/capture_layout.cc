// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/capture_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "aggregator/align/core/clock_reading.h"
#include "aggregator/export/rows/row_model.h"
#include "aggregator/timeline/framework_names.h"
#include "aggregator/timeline/timeline_filter.h"
#include "lib/base/json_writer.h"
#include "lib/base/time_units.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

std::string Number(uint64_t value) { return fmt::format("{}", value); }

std::string_view KindOf(const StreamIdentity& identity) {
  switch (identity.kind) {
    case StreamKind::kNeuronCore:
      return identity.has_core() ? "core" : "other";
    case StreamKind::kFramework:
      return IsFrameworkMapping(identity) ? "mapping" : "framework";
    case StreamKind::kHost:
      return "host";
    case StreamKind::kAnnotation:
      return "annotation";
    case StreamKind::kUnspecified:
      break;
  }
  return "other";
}

std::string LabelOf(const StreamDescription& stream, const RankBinding& rank) {
  const StreamIdentity& identity = stream.identity;
  if (identity.kind == StreamKind::kHost) return "host";
  if (identity.kind == StreamKind::kFramework) return identity.name;
  if (identity.kind == StreamKind::kAnnotation) {
    return fmt::format("pid {} {}", identity.worker.pid, identity.name);
  }
  std::string label = rank.label;
  if (identity.has_core())
    label += fmt::format("{}nc {}", label.empty() ? "" : " · ", identity.nc_idx);
  return label.empty() ? fmt::format("pid {}", identity.worker.pid) : label;
}

std::string_view StateOf(CaptureState state) {
  if (state == CaptureState::kArming) return "ARMING";
  return HasEnded(state) ? "ENDED" : "RUNNING";
}

uint64_t LostOf(const StreamDescription& stream) {
  uint64_t lost = 0;
  for (const Loss& loss : stream.losses) lost += loss.events;
  return lost;
}

// Writes the stretches of time in which events are missing, or belong to another capture.
void WriteGaps(const StreamDescription& stream, const ClockMap& clock, JsonWriter& json) {
  const auto write = [&](const Loss& gap, std::string_view kind, std::string_view reason) {
    json.Open('{')
        .Member("begin_ns", Number(clock.ToReference(gap.first_timestamp_ns)))
        .Member("end_ns", Number(clock.ToReference(gap.last_timestamp_ns)))
        .Member("events", Number(gap.events))
        .Member("events_unknown", gap.events_unknown)
        .Member("kind", kind)
        .Member("reason", reason)
        .Member("detail", gap.detail)
        .Close('}');
  };
  json.Key("gaps").Open('[');
  for (const Loss& gap : stream.gaps) {
    if (gap.first_timestamp_ns == 0) continue;
    write(gap, gap.place == LossPlace::kStore ? "damage" : "loss",
          fmt::format("{}, {}", ToString(gap.place), ToString(gap.reason)));
  }
  for (const Suspension& suspension : stream.suspensions) {
    write(ShownAmongLosses(suspension), "suspension", Describe(suspension));
  }
  json.Close(']');
}

// Writes the moments of the capture itself, as the aggregator's clock had them.
void WriteMarkers(const CaptureRecord& record, JsonWriter& json) {
  const auto write = [&](std::string_view kind, uint64_t at_ns, std::string_view detail) {
    if (at_ns == 0) return;
    json.Open('{')
        .Member("kind", kind)
        .Member("ns", Number(at_ns))
        .Member("detail", detail)
        .Close('}');
  };
  json.Key("markers").Open('[');
  write("started", record.started_realtime_ns, record.spec.cause);
  write("armed", record.armed_realtime_ns, "");
  write("stopped", record.stopped_realtime_ns, "");
  json.Close(']');
}

void WriteBound(const InstanceClock* clock, JsonWriter& json) {
  const bool is_known = clock != nullptr && clock->bound_ns != kNoBound;
  json.Member("bound_known", is_known).Member("bound_ns", Number(is_known ? clock->bound_ns : 0));
}

}  // namespace

CaptureLayout CaptureLayout::Make(const CaptureRecord& record, CaptureDescription capture,
                                  CaptureClocks clocks) {
  CaptureLayout layout;
  layout.record_ = record;
  layout.capture_ = std::move(capture);
  layout.clocks_ = std::move(clocks);
  layout.warnings_ = layout.capture_.warnings;
  layout.ranks_ = BindRanks(layout.capture_.streams, layout.warnings_);
  if (auto warning = OwnTimeWarning(layout.capture_.streams, {}, /*is_recorded=*/false)) {
    layout.warnings_.push_back(*std::move(warning));
  }
  std::vector<TimelineStream> streams;
  for (size_t i = 0; i < layout.capture_.streams.size(); ++i) {
    streams.push_back({.description = layout.capture_.streams[i], .rank = layout.ranks_[i]});
  }
  layout.order_ = DisplayOrder(streams);
  layout.FindTimes();
  layout.FindVersion();
  return layout;
}

// Times of streams that have their own are in no relation to those of the others, so that they make
// nothing begin earlier or last longer.
void CaptureLayout::FindTimes() {
  uint64_t begin_ns = UINT64_MAX;
  uint64_t first_event_ns = UINT64_MAX;
  for (const StreamDescription& stream : capture_.streams) {
    if (stream.events == 0 || stream.has_own_time() || IsFrameworkMapping(stream.identity))
      continue;
    const ClockMap& clock = clocks_.maps.For(stream.identity.worker, stream.clock_domain);
    const uint64_t first_ns = clock.ToReference(stream.first_timestamp_ns);
    begin_ns = std::min(begin_ns, first_ns);
    end_ns_ = std::max(end_ns_, clock.ToReference(stream.last_timestamp_ns));
    if (stream.identity.kind != StreamKind::kHost) {
      first_event_ns = std::min(first_event_ns, first_ns);
    }
  }
  first_event_ns_ = first_event_ns == UINT64_MAX ? 0 : first_event_ns;
  begin_ns_ = begin_ns == UINT64_MAX ? 0 : begin_ns;
  PlaceOwnTimes(/*are_alone=*/begin_ns == UINT64_MAX);
}

void CaptureLayout::PlaceOwnTimes(bool are_alone) {
  for (const StreamDescription& stream : capture_.streams) {
    if (!stream.has_own_time() || stream.events == 0 || IsFrameworkMapping(stream.identity)) {
      continue;
    }
    if (are_alone) {
      begin_ns_ = capture_.id.CreatedRealtimeNs();
      const uint64_t length_ns =
          SubtractSaturating(stream.last_timestamp_ns, stream.first_timestamp_ns);
      end_ns_ = std::max(end_ns_, AddSaturating(begin_ns_, length_ns));
    }
    own_clocks_.emplace(stream.number, OwnTimeClock(stream, begin_ns_));
  }
}

const ClockMap& CaptureLayout::ClockOf(const StreamDescription& stream) const {
  const auto own = own_clocks_.find(stream.number);
  return own != own_clocks_.end() ? own->second
                                  : clocks_.maps.For(stream.identity.worker, stream.clock_domain);
}

void CaptureLayout::FindVersion() {
  std::string identity = fmt::format("{} {}", clocks_.version, clocks_.is_final);
  for (size_t i = 0; i < capture_.streams.size(); ++i) {
    identity += fmt::format("\n{} {}", capture_.streams[i].number, ranks_[i].label);
  }
  // Browsers keep it as a number.
  version_ = HashEventType(identity) >> 16;
}

std::vector<uint32_t> CaptureLayout::StreamNumbers(const EventQuery& query,
                                                   const std::vector<uint32_t>& chosen) const {
  const absl::flat_hash_set<uint32_t> wanted(chosen.begin(), chosen.end());
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < capture_.streams.size(); ++i) {
    const StreamDescription& stream = capture_.streams[i];
    EventQuery::Place place{.worker_gid = ranks_[i].worker_gid};
    if (stream.identity.has_core()) place.core = stream.identity.nc_idx;
    const bool is_chosen = wanted.empty() || wanted.contains(stream.number);
    if (is_chosen && query.CanMatchAt(place)) numbers.push_back(stream.number);
  }
  return numbers;
}

std::string CaptureLayout::Json() const {
  JsonWriter json;
  json.Open('{').Key("capture").Open('{');
  json.Member("id", record_.id.ToString())
      .Member("name", record_.spec.name)
      .Member("state", StateOf(record_.state))
      .Close('}');
  json.Member("version", Number(version_))
      .Member("live", is_live())
      .Member("begin_ns", Number(begin_ns_))
      .Member("end_ns", Number(end_ns_))
      .Member("warnings", warnings_);
  WriteMarkers(record_, json);
  std::map<std::string, size_t> instance_of;
  json.Key("instances").Open('[');
  for (const uint32_t stream : order_) {
    const WorkerIdentity& worker = capture_.streams[stream].identity.worker;
    if (!instance_of.try_emplace(worker.instance_id, instance_of.size()).second) continue;
    json.Open('{').Member("id", worker.instance_id).Member("label", worker.instance_id);
    WriteBound(clocks_.Find(worker), json);
    json.Close('}');
  }
  json.Close(']').Key("streams").Open('[');
  for (const uint32_t number : order_) {
    const StreamDescription& stream = capture_.streams[number];
    const StreamIdentity& identity = stream.identity;
    const ClockMap& clock = ClockOf(stream);
    // A stream without events has no times, which a map would turn into some.
    const auto time = [&](uint64_t raw_ns) {
      return Number(stream.events == 0 ? 0 : clock.ToReference(raw_ns));
    };
    json.Open('{')
        .Member("number", stream.number)
        .Member("instance", instance_of[identity.worker.instance_id])
        .Member("kind", KindOf(identity))
        .Member("process",
                identity.worker.pid == 0 ? "" : fmt::format("pid {}", identity.worker.pid))
        .Member("job", stream.job)
        .Member("label", LabelOf(stream, ranks_[number]));
    json.Key("gid");
    ranks_[number].worker_gid ? json.Value(*ranks_[number].worker_gid) : json.Json("null");
    json.Key("core");
    identity.has_core() ? json.Value(identity.nc_idx) : json.Json("null");
    json.Member("is_disputed", ranks_[number].is_disputed)
        .Member("events", Number(stream.events))
        .Member("lost", Number(LostOf(stream)))
        .Member("chunks", Number(stream.chunks))
        .Member("begin_ns", time(stream.first_timestamp_ns))
        .Member("end_ns", time(stream.last_timestamp_ns))
        .Member("own_time", stream.has_own_time());
    WriteBound(clocks_.Find(identity.worker), json);
    WriteGaps(stream, clock, json);
    json.Close('}');
  }
  return json.Close(']').Close('}').Take();
}

}  // namespace neurontrace
