// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/pftrace_check/checker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "lib/base/json_string.h"
#include "tests/e2e/perfetto_subset.pb.h"

namespace neurontrace::pftrace_check {
namespace {

namespace pb = perfetto_subset;

constexpr size_t kErrorsNamed = 100;
constexpr size_t kDepthMax = 512;
constexpr size_t kInstantPlace = SIZE_MAX;  // SlicePlace::slice of an instant
constexpr int32_t kFlowIn = 1;              // LegacyEvent::flow_direction
constexpr uint32_t kCleared = 1;
constexpr uint32_t kNeedsState = 2;
enum EventType { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

using Entries = google::protobuf::RepeatedPtrField<pb::InternedData::Entry>;
using Texts = std::unordered_map<uint64_t, std::string>;

struct Sequence {
  bool has_state = false;
  uint64_t now_ns = 0;
  bool is_incremental = false;
  uint32_t default_clock = 0;
  Texts categories, names, annotation_names, strings;
};

struct Open {
  size_t slice;  // index in its track's slices
  uint64_t number;
};

struct TrackState {
  size_t index = 0;
  uint64_t parent = 0;
  bool is_process = false;
  std::vector<Open> open;
  uint64_t last_ns = 0;
};

class Checker {
 public:
  Report Run(std::string_view trace) {
    report_.bytes = trace.size();
    google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(trace.data()),
                                                 static_cast<int>(trace.size()));
    while (true) {
      const uint32_t tag = input.ReadTag();
      if (tag == 0) break;
      uint32_t size = 0;
      pb::TracePacket packet;
      if (tag != 0x0a || !input.ReadVarint32(&size)) {
        Error("the file is not a row of packets");
        break;
      }
      const auto limit = input.PushLimit(static_cast<int>(size));
      if (!packet.MergePartialFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
        Error("packet does not parse");
        break;
      }
      input.PopLimit(limit);
      ++report_.packets;
      TakePacket(packet);
    }
    if (static_cast<size_t>(input.CurrentPosition()) != trace.size()) Error("bytes after the end");
    Finish();
    return std::move(report_);
  }

 private:
  template <typename... Args>
  void Error(fmt::format_string<Args...> format, Args&&... args) {
    if (report_.error_count++ < kErrorsNamed) {
      report_.errors.push_back(fmt::format("packet {}: {}", report_.packets,
                                           fmt::format(format, std::forward<Args>(args)...)));
    }
  }

  void TakePacket(const pb::TracePacket& packet) {
    if (!packet.unknown_fields().empty()) Error("has fields that are not in the subset");
    const uint32_t id = packet.trusted_packet_sequence_id();
    if (id == 0) return Error("has no sequence");
    Sequence& sequence = sequences_[id];
    if ((packet.sequence_flags() & kCleared) != 0) {
      sequence = Sequence{.has_state = true, .now_ns = sequence.now_ns};
      ++report_.generations;
    }
    if (packet.has_trace_packet_defaults()) {
      sequence.default_clock = packet.trace_packet_defaults().timestamp_clock_id();
    }
    if (packet.has_interned_data()) TakeInterned(packet.interned_data(), sequence);
    if (packet.has_clock_snapshot()) ReadClocks(packet.clock_snapshot(), sequence);
    if ((packet.sequence_flags() & kNeedsState) != 0 && !sequence.has_state) {
      return Error("needs a state that its sequence does not have");
    }
    if (packet.has_timestamp()) {
      const uint32_t clock =
          packet.has_timestamp_clock_id() ? packet.timestamp_clock_id() : sequence.default_clock;
      if (clock == 1) return TakeBody(packet, sequence, packet.timestamp());
      if (clock != 64 || !sequence.is_incremental) Error("time by a clock {} unknown here", clock);
      if (packet.timestamp() > uint64_t{INT64_MAX} - sequence.now_ns) Error("time out of range");
      sequence.now_ns += packet.timestamp();
      if (sequence.now_ns < file_ns_) Error("time runs backwards in the file");
      file_ns_ = std::max(file_ns_, sequence.now_ns);
    }
    TakeBody(packet, sequence, sequence.now_ns);
  }

  // What the packet is about, `now_ns` being its time.
  void TakeBody(const pb::TracePacket& packet, Sequence& sequence, uint64_t now_ns) {
    sequence.now_ns = now_ns;
    if (packet.has_trace_attributes()) {
      for (const auto& attribute : packet.trace_attributes().attribute()) {
        report_.attributes[attribute.key()] = attribute.string_value();
      }
    }
    if (packet.has_track_descriptor()) TakeDescriptor(packet.track_descriptor());
    if (packet.has_track_event()) {
      if (!packet.has_timestamp()) Error("an event without time");
      if ((packet.sequence_flags() & kNeedsState) == 0) Error("an event that needs no state");
      TakeEvent(packet.track_event(), sequence);
    }
  }

  void ReadClocks(const pb::ClockSnapshot& snapshot, Sequence& sequence) {
    std::optional<uint64_t> realtime;
    std::optional<uint64_t> incremental;
    for (const auto& clock : snapshot.clocks()) {
      if (clock.clock_id() == 1) realtime = clock.timestamp();
      if (clock.clock_id() == 64) {
        incremental = clock.timestamp();
        sequence.is_incremental = clock.is_incremental();
      }
    }
    if (!realtime || !incremental || *realtime != *incremental) {
      return Error("clocks 1 and 64 are not told to be equal");
    }
    if (snapshot.primary_trace_clock() != 1) Error("the trace clock is not REALTIME");
    if (*incremental < sequence.now_ns) Error("the clock steps backwards");
    sequence.now_ns = *incremental;
  }

  void ReadTable(const Entries& entries, Texts& texts) {
    for (const auto& entry : entries) {
      if (entry.iid() == 0) Error("interned under number 0");
      if (!texts.emplace(entry.iid(), entry.text()).second) Error("interned twice");
    }
  }
  void TakeInterned(const pb::InternedData& data, Sequence& sequence) {
    ReadTable(data.event_categories(), sequence.categories);
    ReadTable(data.event_names(), sequence.names);
    ReadTable(data.debug_annotation_names(), sequence.annotation_names);
    ReadTable(data.debug_annotation_string_values(), sequence.strings);
  }
  std::string Resolve(const Texts& texts, uint64_t iid, std::string_view what) {
    const auto found = texts.find(iid);
    if (found != texts.end()) return found->second;
    Error("{} {} was never interned", what, iid);
    return fmt::format("?{}", iid);
  }

  void TakeDescriptor(const pb::TrackDescriptor& descriptor) {
    if (descriptor.uuid() == 0) return;  // the root: orderings only
    if (!uuids_
             .emplace(descriptor.uuid(), TrackState{report_.tracks.size(),
                                                    descriptor.parent_uuid(),
                                                    descriptor.has_process(),
                                                    {},
                                                    0})
             .second) {
      return Error("track {} is described twice", descriptor.uuid());
    }
    Track& track = report_.tracks.emplace_back();
    track.uuid = descriptor.uuid();
    track.name = track.row = descriptor.name();
    track.description = descriptor.description();
    track.is_counter = descriptor.has_counter();
    track.axis = descriptor.counter().y_axis_share_key();
    track.rank = descriptor.sibling_order_rank();
    if (descriptor.has_process()) {
      const auto& process = descriptor.process();
      if (process.pid() == 0) Error("process without pid");
      if (!pids_
               .emplace(process.pid(),
                        process.process_name().substr(0, process.process_name().rfind(" [gid")))
               .second)
        Error("pid used twice");
      const std::string& full = process.process_name();
      track.process = full.substr(0, full.rfind(" [gid"));
      track.name = track.row = track.process;
      report_.processes.push_back(track.process);
      if (track.process != full) track.ranks = full.substr(track.process.size() + 1);
    } else if (descriptor.has_thread()) {
      ReadThread(descriptor.thread(), track);
    } else {
      if (descriptor.sibling_merge_behavior() != 2) Error("track may be merged with others");
      const size_t lane = track.name.rfind(" (lane ");
      if (lane != std::string::npos) track.row = track.name.substr(0, lane);
      ReadParent(descriptor, track);
    }
  }
  void ReadThread(const pb::ThreadDescriptor& thread, Track& track) {
    track.is_thread = true;
    track.tid = thread.tid();
    track.name = track.row = thread.thread_name();
    const auto process = pids_.find(thread.pid());
    if (process == pids_.end()) return Error("thread of a process not described before");
    track.process = process->second;
    if (!tids_.emplace(thread.pid(), thread.tid()).second) Error("tid used twice");
    if (thread.tid() == 0 || thread.tid() == thread.pid()) Error("tid has a meaning of its own");
  }
  void ReadParent(const pb::TrackDescriptor& descriptor, Track& track) {
    if (!descriptor.has_parent_uuid()) return;
    const auto parent = uuids_.find(descriptor.parent_uuid());
    if (parent == uuids_.end()) return Error("track hangs from one not described before");
    const Track& above = report_.tracks[parent->second.index];
    track.process = above.process;
    track.parent = above.name;
  }

  void ReadArguments(const pb::TrackEvent& event, const Sequence& sequence, Slice& slice) {
    for (const auto& annotation : event.debug_annotations()) {
      ++report_.arguments;
      if (!annotation.unknown_fields().empty()) Error("an argument with unknown fields");
      const std::string name =
          Resolve(sequence.annotation_names, annotation.name_iid(), "argument name");
      std::string value;
      std::string type = "text";
      if (annotation.has_bool_value()) {
        type = "bool";
        value = annotation.bool_value() ? "true" : "false";
      } else if (annotation.has_uint_value()) {
        type = "int";  // Perfetto's args table has signed and unsigned in one column
        value = fmt::format("{}", annotation.uint_value());
      } else if (annotation.has_int_value()) {
        type = "int";
        value = fmt::format("{}", annotation.int_value());
      } else if (annotation.has_double_value()) {
        type = "double";
        value = fmt::format("{}", annotation.double_value());
      } else if (annotation.has_string_value()) {
        value = annotation.string_value();
      } else if (annotation.has_string_value_iid()) {
        value = Resolve(sequence.strings, annotation.string_value_iid(), "string");
      }
      report_.argument_types[name].insert(type);
      if (!slice.arguments.emplace(name, value).second) Error("argument {} twice", name);
    }
  }

  // As Perfetto's importer does it: a flow id leads from slice to slice; a legacy event's incoming
  // one ends at the slice and stays where it came from.
  void TakeFlows(const pb::TrackEvent& event, const SlicePlace& place, Slice& slice) {
    if (event.has_correlation_id()) slice.correlation_id = event.correlation_id();
    if (event.has_legacy_event()) {
      const pb::LegacyEvent& legacy = event.legacy_event();
      if (legacy.flow_direction() != kFlowIn) Error("a legacy event that is no arrow's end");
      if (!flows_.contains(legacy.bind_id())) {
        Error("flow {} ends before it begins", legacy.bind_id());
      }
      TakeFlow(legacy.bind_id(), place, false);
      slice.flows.push_back(legacy.bind_id());
    }
    for (const uint64_t id : event.flow_ids()) {
      TakeFlow(id, place, true);
      slice.flows.push_back(id);
    }
    for (const uint64_t id : event.terminating_flow_ids()) {
      if (!flows_.contains(id)) Error("flow {} ends before it begins", id);
      TakeFlow(id, place, true);
      closed_flows_.insert(id);
      slice.terminating_flows.push_back(id);
    }
  }

  void TakeFlow(uint64_t id, const SlicePlace& place, bool moves) {
    ++report_.flow_points;
    ++flow_points_[id];
    if (closed_flows_.contains(id)) Error("flow {} continues after its end", id);
    const auto [at, is_first] = flows_.try_emplace(id, place);
    if (is_first) return;
    ++report_.flow_arrows;
    if (place.slice != kInstantPlace && at->second.slice != kInstantPlace) {
      Arrow arrow{id, at->second, place};
      if (StartOf(arrow.to) < StartOf(arrow.from)) std::swap(arrow.from, arrow.to);
      report_.arrows.push_back(arrow);
    }
    if (moves) at->second = place;
  }

  uint64_t StartOf(const SlicePlace& place) const {
    return report_.tracks[place.track].slices[place.slice].start_ns;
  }

  void TakeEvent(const pb::TrackEvent& event, const Sequence& sequence) {
    if (!event.unknown_fields().empty()) Error("an event with unknown fields");
    const auto found = uuids_.find(event.track_uuid());
    if (found == uuids_.end()) return Error("event on track {} not described", event.track_uuid());
    TrackState& state = found->second;
    Track& track = report_.tracks[state.index];
    if (state.is_process) Error("event on a process");
    if (sequence.now_ns < state.last_ns) Error("time runs backwards on track {}", track.name);
    state.last_ns = sequence.now_ns;
    if (track.is_counter != (event.type() == kCounter)) Error("counter on no counter's track");
    switch (event.type()) {
      case kBegin:
      case kInstant:
        return TakeBegin(event, sequence, state, track);
      case kEnd:
        return TakeEnd(event, sequence, state, track);
      case kCounter:
        ++report_.counters;
        track.counter.emplace_back(sequence.now_ns, event.has_counter_value()
                                                        ? static_cast<double>(event.counter_value())
                                                        : event.double_counter_value());
        return;
      default:
        Error("event of type {}", event.type());
    }
  }

  void TakeBegin(const pb::TrackEvent& event, const Sequence& sequence, TrackState& state,
                 Track& track) {
    const bool is_instant = event.type() == kInstant;
    Slice slice;
    slice.start_ns = slice.end_ns = sequence.now_ns;
    slice.name = Resolve(sequence.names, event.name_iid(), "name");
    for (const uint64_t iid : event.category_iids()) {
      slice.category = Resolve(sequence.categories, iid, "category");
    }
    slice.depth = state.open.size();
    if (slice.depth >= kDepthMax) Error("nested deeper than {}", kDepthMax);
    ReadArguments(event, sequence, slice);
    if (is_instant) {
      ++report_.instants;
      TakeFlows(event, {state.index, kInstantPlace}, slice);
      track.instants.push_back(std::move(slice));
      return;
    }
    ++report_.slices;
    state.open.push_back({track.slices.size(), report_.packets});
    track.slices.push_back(std::move(slice));
    TakeFlows(event, {state.index, track.slices.size() - 1}, track.slices.back());
  }

  // An end closes the slice begun last, so nesting holds by construction; what can go wrong is
  // which slice was meant. The exporter says the length as an argument: it must be the one that
  // came out.
  void TakeEnd(const pb::TrackEvent& event, const Sequence& sequence, TrackState& state,
               Track& track) {
    if (state.open.empty()) return Error("an end on {} without a begin", track.name);
    const SlicePlace place{state.index, state.open.back().slice};
    Slice& slice = track.slices[place.slice];
    state.open.pop_back();
    slice.end_ns = sequence.now_ns;
    ReadArguments(event, sequence, slice);
    TakeFlows(event, place, slice);
    const auto duration = slice.arguments.find("duration");
    if (duration != slice.arguments.end() && !slice.arguments.contains("squeezed") &&
        duration->second != fmt::format("{}", slice.end_ns - slice.start_ns)) {
      Error("slice {} on {} lasts {} where it says {}", slice.name, track.name,
            slice.end_ns - slice.start_ns, duration->second);
    }
    // An instant of no length at the end of another slice must not have kept it open.
    if (!state.open.empty() && track.slices[state.open.back().slice].start_ns > slice.start_ns) {
      Error("slice {} on {} encloses one begun before it", slice.name, track.name);
    }
  }

  void Finish() {
    for (const auto& [uuid, state] : uuids_) {
      if (!state.open.empty()) {
        Error("{} slices on {} never end", state.open.size(), report_.tracks[state.index].name);
      }
    }
    for (const auto& [id, count] : flow_points_) {
      if (count == 1) ++report_.lone_flow_points;
    }
  }

  Report report_;
  std::map<uint32_t, Sequence> sequences_;
  uint64_t file_ns_ = 0;
  std::unordered_map<uint64_t, TrackState> uuids_;
  std::map<int32_t, std::string> pids_;
  std::set<std::pair<int32_t, int64_t>> tids_;
  std::unordered_map<uint64_t, uint64_t> flow_points_;
  std::unordered_map<uint64_t, SlicePlace> flows_;  // where each has come to
  std::set<uint64_t> closed_flows_;
};

std::string Numbers(const std::vector<uint64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

std::string SliceJson(const Slice& slice) {
  std::string arguments;
  for (const auto& [name, value] : slice.arguments) {
    arguments +=
        fmt::format("{}{}:{}", arguments.empty() ? "" : ",", JsonText(name), JsonText(value));
  }
  return fmt::format(R"({{"name":{},"category":{},"start_ns":{},"end_ns":{},"depth":{},"flows":{},)"
                     R"("terminating_flows":{},"arguments":{{{}}}}})",
                     JsonText(slice.name), JsonText(slice.category), slice.start_ns, slice.end_ns,
                     slice.depth, Numbers(slice.flows), Numbers(slice.terminating_flows),
                     arguments);
}

std::string SlicesJson(const std::vector<Slice>& slices) {
  std::string out = "[";
  for (const Slice& slice : slices) {
    if (out.size() > 1) out += ",\n";
    out += SliceJson(slice);
  }
  return out + "]";
}

std::string TrackJson(const Track& track) {
  return fmt::format(
      R"({{"uuid":{},"name":{},"process":{},"parent":{},"rank":{},"row":{},"description":{},)"
      R"("is_thread":{},)"
      R"("is_counter":{},"tid":{},"slice_count":{},"instant_count":{},"counter_count":{},)"
      "\n\"slices\":{},\n\"instants\":{}}}",
      track.uuid, JsonText(track.name), JsonText(track.process), JsonText(track.parent), track.rank,
      JsonText(track.row), JsonText(track.description), track.is_thread, track.is_counter,
      track.tid, track.slices.size(), track.instants.size(), track.counter.size(),
      SlicesJson(track.slices), SlicesJson(track.instants));
}

}  // namespace

Report Check(std::string_view trace) { return Checker().Run(trace); }

const Track* Report::FindRow(std::string_view name) const {
  const auto found = std::find_if(tracks.begin(), tracks.end(), [name](const Track& track) {
    return !track.is_counter && track.name == name;
  });
  return found == tracks.end() ? nullptr : &*found;
}

std::vector<const Slice*> Report::SlicesOfRow(std::string_view row) const {
  std::vector<const Slice*> slices;
  for (const Track& track : tracks) {
    if (track.row != row || track.is_counter) continue;
    for (const Slice& slice : track.slices) slices.push_back(&slice);
  }
  std::stable_sort(slices.begin(), slices.end(), [](const Slice* a, const Slice* b) {
    return std::pair(a->start_ns, ~a->end_ns) < std::pair(b->start_ns, ~b->end_ns);
  });
  return slices;
}

std::string ToText(const Report& report) {
  std::string out = fmt::format(
      "{} bytes, {} packets, {} sequence headers\n{} slices, {} instants, {} counter values, {} "
      "arguments\n{} arrow ends, {} arrows, {} ids with one end only\n",
      report.bytes, report.packets, report.generations, report.slices, report.instants,
      report.counters, report.arguments, report.flow_points, report.flow_arrows,
      report.lone_flow_points);
  for (const auto& [key, value] : report.attributes) out += fmt::format("{}: {}\n", key, value);
  for (const Track& track : report.tracks) {
    out += fmt::format("{}{}{}{}: {} slices, {} instants{}{}\n",
                       track.process == track.name || track.process.empty() ? "" : "  ", track.name,
                       track.ranks.empty() ? "" : " " + track.ranks,
                       track.parent.empty() ? "" : " < " + track.parent, track.slices.size(),
                       track.instants.size(),
                       track.is_counter ? fmt::format(", {} values", track.counter.size()) : "",
                       track.description.empty() ? "" : " (" + track.description + ")");
  }
  for (const std::string& error : report.errors) out += "WRONG " + error + "\n";
  return out + fmt::format("{} wrong\n", report.error_count);
}

std::string ToJson(const Report& report) {
  std::string out = fmt::format(
      R"({{"bytes":{},"packets":{},"generations":{},"slices":{},"instants":{},"counters":{},)"
      R"("arguments":{},"flow_points":{},"flow_arrows":{},"lone_flow_points":{},"error_count":{})",
      report.bytes, report.packets, report.generations, report.slices, report.instants,
      report.counters, report.arguments, report.flow_points, report.flow_arrows,
      report.lone_flow_points, report.error_count);
  const auto list = [&out](std::string_view name, const auto& items, auto text) {
    out += fmt::format(",\n\"{}\":[", name);
    const char* comma = "";
    for (const auto& item : items) {
      out += comma + text(item);
      comma = ",\n";
    }
    out += "]";
  };
  list("errors", report.errors, [](const std::string& text) { return JsonText(text); });
  list("processes", report.processes, [](const std::string& text) { return JsonText(text); });
  list("tracks", report.tracks, TrackJson);
  list("attributes", report.attributes, [](const auto& entry) {
    return fmt::format("[{},{}]", JsonText(entry.first), JsonText(entry.second));
  });
  return out + "}\n";
}

}  // namespace neurontrace::pftrace_check
