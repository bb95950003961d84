// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/xspace/xspace_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <deque>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "aggregator/export/capture_warnings.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/output_files.h"
#include "aggregator/export/rows/lanes.h"
#include "aggregator/export/rows/loss_instants.h"
#include "aggregator/export/rows/row_names.h"
#include "aggregator/export/xspace/plane_buffer.h"
#include "aggregator/export/xspace/xspace_fields.h"
#include "aggregator/timeline/framework_names.h"
#include "lib/base/status.h"
#include "lib/trace/fidelity.h"
#include "lib/trace/host_samples.h"

namespace neurontrace {
namespace {

// Leaves room for the directories and the ending within limits::kExportNameBytesMax.
constexpr size_t kHostNameBytesMax = 128;

// Appends the plane from which the viewer learns when the profile began and ended, in nanoseconds
// since the epoch; see docs/formats/xspace.md. `verdict` is the certificate's, or empty.
void AppendEnvironmentPlane(uint64_t begin_ns, uint64_t end_ns, std::string_view verdict,
                            int64_t id, std::string& out) {
  PlaneBuffer plane(id, "Task Environment");
  plane.AddPlaneStat({"profile_start_time", ValueType::kUint, begin_ns, {}});
  plane.AddPlaneStat({"profile_stop_time", ValueType::kUint, end_ns, {}});
  if (!verdict.empty()) plane.AddPlaneStat({"verdict", ValueType::kString, 0, verdict});
  protozero::pbf_writer(out).add_message(xspace::space::kPlanes, plane.TakeBytes());
}

constexpr size_t kWarningsInFileMax = 1'000;
// The viewer shows planes with this prefix as accelerators that it has no analysis for.
constexpr std::string_view kPlanePrefix = "/device:CUSTOM:";
constexpr std::string_view kSpanDurationStat = "span_duration_ns";
constexpr std::string_view kSqueezedStat = "squeezed_duration_ns";
constexpr std::string_view kShortenedStat = "shortened_duration_ns";
// Ids of framework arrows count from here, above those of links.
constexpr uint64_t kFrameworkFlows = uint64_t{1} << 40;
constexpr uint32_t kLanesOfRow = Lanes::kLanesMax;

// Returns what a waiting span holds beside its own size.
size_t HeldBytes(std::string_view name, const std::vector<EventAttribute>& attributes) {
  constexpr size_t kPerAttribute = sizeof(EventAttribute) + 2 * sizeof(std::string);
  size_t bytes = name.size() + kPerAttribute * attributes.size();
  for (const EventAttribute& attribute : attributes) {
    bytes += attribute.name.size() + attribute.text.size();
  }
  return bytes;
}

// Returns a key of the plane among the planes of all hosts.
uint64_t KeyOf(uint32_t host, uint32_t plane) { return uint64_t{host} << 32 | plane; }

}  // namespace

// The year comes first, so that runs sort by time.
std::string XSpaceRunName(uint64_t epoch_ns) {
  const auto seconds = static_cast<time_t>(epoch_ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}_{:02}_{:02}_{:02}_{:02}_{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string XSpaceHostName(std::string_view instance_id) {
  std::string name(instance_id.substr(0, kHostNameBytesMax));
  for (char& c : name) {
    // A single dot is not a name, but a dot inside of one is allowed.
    if (!IsOutputName(std::string_view(&c, 1)) && c != '.') c = '_';
  }
  return name.empty() || name.front() == '.' ? "host_" + name : name;
}

// How it works: each process has a PlaneBuffer, which collects events of all of its lines. When the
// buffers exceed their limit, the largest planes become messages in the files of their instances. A
// plane with many events is thus written in several messages, which viewers merge by id.
absl::Status XSpaceExporter::Begin(const TimelineHeader& header) {
  BeginRows(header);
  waiting_.Begin(header);
  origin_ns_ = header.begin_ns;
  end_ns_ = header.begin_ns;
  attributes_.Begin(header);
  if (!options_.no_flows) executions_.emplace(header.streams, header.framework_names);
  AddHosts();
  return WriteLosses();
}

// All hosts get a file, even without events, so that the viewer lists every instance.
void XSpaceExporter::AddHosts() {
  const std::string run = XSpaceRunName(origin_ns_);
  std::set<std::string> taken;
  for (const TimelineStream& stream : header_->streams) {
    const std::string& id = stream.description.identity.worker.instance_id;
    if (!host_of_.try_emplace(id, static_cast<uint32_t>(hosts_.size())).second) continue;
    const std::string name = XSpaceHostName(id);
    std::string own = name;
    // Different ids may become equal names.
    for (size_t n = 2; !taken.insert(own).second; ++n) own = fmt::format("{}-{}", name, n);
    Host& host = hosts_.emplace_back();
    host.instance_id = id;
    host.file_name = fmt::format("plugins/profile/{}/{}.xplane.pb", run, own);
  }
}

// Requires that the process exists in rows_. A process keeps its plane.
XSpaceExporter::Place XSpaceExporter::PlaceOf(uint32_t process) {
  if (process >= places_.size()) places_.resize(process + 1);
  if (places_[process]) return *places_[process];
  const ExportProcess& about = rows_.process(process);
  const StreamIdentity& identity = header_->streams[about.stream].description.identity;
  Place place{.host = host_of_.at(identity.worker.instance_id)};
  auto& planes = hosts_[place.host].planes;
  // The last plane takes all further processes, with their labels in the names of lines.
  if (planes.size() < kPlanesMax) {
    const bool is_last = planes.size() + 1 == kPlanesMax;
    planes.push_back(std::make_unique<PlaneBuffer>(
        static_cast<int64_t>(planes.size() + 1),
        std::string(kPlanePrefix) + (is_last ? "further processes" : about.label)));
    if (!is_last) {
      PlaneBuffer& plane = *planes.back();
      plane.AddPlaneStat({"instance_id", ValueType::kString, 0, identity.worker.instance_id});
      if (identity.kind == StreamKind::kNeuronCore || identity.kind == StreamKind::kAnnotation) {
        plane.AddPlaneStat({"process_id", ValueType::kUint, identity.worker.pid, {}});
      }
      // FlushPlane subtracts them with the plane's events.
      hosts_[place.host].bytes += plane.buffered_bytes();
      buffered_bytes_ += plane.buffered_bytes();
    }
  }
  place.plane = static_cast<uint32_t>(planes.size() - 1);
  places_[process] = place;
  return place;
}

// Lines are shown in the order of their numbers: by core, the device's after the runtime's.
XSpaceExporter::Line& XSpaceExporter::LineOf(uint32_t row, uint32_t lane) {
  constexpr uint32_t kLinesPerOrder = 64;
  if (row >= lines_.size()) lines_.resize(row + 1);
  Line& line = lines_[row];
  const ExportRow& about = rows_.row(row);
  if (line.lanes.empty()) line.place = PlaceOf(about.process);
  while (line.lanes.size() <= lane) {
    const uint64_t key = KeyOf(line.place.host, line.place.plane);
    // The search begins where the latest line of this order found its number, so that many lines
    // take no quadratic time.
    uint32_t& display_id = latest_ids_[{key, about.order}];
    if (display_id == 0) {
      display_id = about.order % (UINT32_MAX / kLinesPerOrder) * kLinesPerOrder + 1;
    }
    while (!display_ids_.insert({key, display_id}).second) ++display_id;
    std::string name = about.name;
    if (line.place.plane + 1 == kPlanesMax) name = rows_.process(about.process).label + " " + name;
    if (!line.lanes.empty()) name += fmt::format(" (lane {})", line.lanes.size() + 1);
    line.lanes.push_back(
        hosts_[line.place.host].planes[line.place.plane]->AddLine(display_id, std::move(name)));
  }
  return line;
}

// Lines for counters and losses, one for each name in a plane.
uint32_t XSpaceExporter::SideLine(const Place& place, const std::string& name) {
  const uint64_t key = KeyOf(place.host, place.plane);
  const auto [known, is_new] = side_lines_.try_emplace({key, name}, 0);
  if (!is_new) return known->second;
  // From the end, so that these lines are shown last.
  uint32_t display_id = UINT32_MAX;
  while (!display_ids_.insert({key, display_id}).second) --display_id;
  known->second = hosts_[place.host].planes[place.plane]->AddLine(display_id, name);
  return known->second;
}

absl::Status XSpaceExporter::Add(const Place& place, uint32_t line, const Item& item,
                                 const std::vector<EventAttribute>& attributes) {
  Host& host = hosts_[place.host];
  // Descriptors are limited. Events of such a host are kept as long as buffers have room.
  const bool cannot_open = host.file == nullptr && hosts_open_ >= kHostsOpenMax &&
                           buffered_bytes_ > options_.buffered_bytes_max;
  if (host.bytes >= options_.host_bytes_max || cannot_open) {
    if (host.left_out++ == 0) host.left_out_from_ns = origin_ns_ + item.start_ns;
    return absl::OkStatus();
  }
  PlaneBuffer& plane = *host.planes[place.plane];
  const size_t before = plane.buffered_bytes();
  plane.Add(line, item.name,
            {.start_ns = item.start_ns,
             .duration_ns = item.duration_ns,
             .flow = item.flow,
             .number = item.number},
            attributes);
  const size_t added = plane.buffered_bytes() - before;
  host.bytes += added;
  buffered_bytes_ += added;
  return buffered_bytes_ > options_.buffered_bytes_max ? FlushPlanes() : absl::OkStatus();
}

// Encodes row and lane in one number, which WriteFlow takes apart again.
uint32_t XSpaceExporter::Placed(const TimelineRecord&, uint64_t, Placement& placement) {
  return placement.row * kLanesOfRow + placement.lane;
}

void XSpaceExporter::Advance(const TimelineRecord& record) {
  if (record.kind != RecordKind::kStopAttributes) end_ns_ = std::max(end_ns_, record.end_ns);
}

absl::Status XSpaceExporter::WriteStop(const TimelineRecord& record) {
  auto waiting = waiting_.Take(record.span_id);
  return waiting ? EndWait(*waiting, attributes_.ForStop(record)) : absl::OkStatus();
}

absl::Status XSpaceExporter::WriteHostCounter(const TimelineRecord& record) {
  return WriteCounterAt(record, PlaceOf(rows_.ProcessOf(record.stream)));
}

absl::Status XSpaceExporter::WriteCounter(const TimelineRecord& record) {
  return WriteCounterAt(record, PlaceOf(rows_.ProcessOf(record)));
}

absl::Status XSpaceExporter::EndBatch(const TimelineBatch& batch) {
  RETURN_IF_ERROR(WriteArrows());
  while (auto late = waiting_.TakeLate(batch.begin_ns)) RETURN_IF_ERROR(EndWait(*late, {}));
  return absl::OkStatus();
}

uint64_t XSpaceExporter::FlowOf(const TimelineRecord& record) {
  if (!executions_) return 0;
  const auto& points = executions_->Of(record);
  // An event can have one flow in this format: the first, which is the framework's call if there is
  // one.
  if (points.empty()) return 0;
  switch (points.front().role) {
    case LinkRole::kStart:
      return xspace::Flow(xspace::FlowDirection::kOut, points.front().id);
    case LinkRole::kStep:
      return xspace::Flow(xspace::FlowDirection::kInOut, points.front().id);
    case LinkRole::kEnd:
      break;
  }
  return xspace::Flow(xspace::FlowDirection::kIn, points.front().id);
}

// Instants are events without a length.
absl::Status XSpaceExporter::WriteEvent(const TimelineRecord& record, uint64_t number,
                                        const Placement& placement) {
  Item item{.name = std::string(attributes_.NameOf(record)),
            .start_ns = SinceBegin(record.start_ns),
            .duration_ns = placement.has_length ? record.end_ns - record.start_ns : 0,
            .flow = FlowOf(record),
            // Only these can be the end of a framework's arrow.
            .number = attributes_.is_framework(record) ? number : 0};
  std::vector<EventAttribute> attributes = attributes_.Of(record);
  std::deque<std::string> renamed;  // views into it stay
  for (EventAttribute& attribute : attributes) {
    if (attribute.name != xspace::kFlowStat && attribute.name != kSqueezedStat &&
        attribute.name != kShortenedStat) {
      continue;
    }
    // These names have a meaning of their own in this file.
    attribute.name = renamed.emplace_back("data." + std::string(attribute.name));
  }
  if (placement.is_squeezed) {
    attributes.push_back(
        {kSqueezedStat, ValueType::kUint, record.end_ns - record.start_ns, std::string_view()});
  } else if (item.duration_ns > PlaneBuffer::kDurationMaxNs) {
    ++shortened_;
    attributes.push_back({kShortenedStat, ValueType::kUint, item.duration_ns, std::string_view()});
  }
  // The texts of attributes point into the record, which ends with its batch: a waiting span copies
  // them.
  if (const size_t bytes = HeldBytes(item.name, attributes); waiting_.Admits(record, bytes)) {
    Waiting waiting{.row = placement.row, .lane = placement.lane, .item = std::move(item)};
    for (const EventAttribute& attribute : attributes) {
      waiting.texts.emplace_back(attribute.name, attribute.text);
      waiting.attributes.push_back({{}, attribute.type, attribute.value, {}});
    }
    waiting_.Add(record, std::move(waiting), bytes);
    return absl::OkStatus();
  }
  const Line& line = LineOf(placement.row, placement.lane);
  return Add(line.place, line.lanes[placement.lane], item, attributes);
}

// Attributes of the start are complete, so that the stop's are renamed if necessary.
absl::Status XSpaceExporter::EndWait(Waiting& waiting, const std::vector<EventAttribute>& stop) {
  std::vector<EventAttribute> attributes = waiting.attributes;
  for (size_t i = 0; i < attributes.size(); ++i) {
    attributes[i].name = waiting.texts[i].first;
    attributes[i].text = waiting.texts[i].second;
  }
  std::deque<std::string> renamed;  // views into it stay
  for (EventAttribute attribute : stop) {
    const auto is_taken = [&] {
      return std::any_of(attributes.begin(), attributes.end(),
                         [&](const EventAttribute& other) { return other.name == attribute.name; });
    };
    while (is_taken()) {
      attribute.name = renamed.emplace_back("stop_" + std::string(attribute.name));
    }
    attributes.push_back(attribute);
  }
  const Line& line = LineOf(waiting.row, waiting.lane);
  return Add(line.place, line.lanes[waiting.lane], waiting.item, attributes);
}

// An arrow whose start comes late is written with both of its ends then, under the id of its end.
absl::Status XSpaceExporter::WriteArrows() {
  using enum xspace::FlowDirection;
  for (const ArrowFinding& found : std::exchange(arrows_.findings(), {})) {
    if (found.kind == ArrowFinding::Kind::kWaiting) continue;
    const bool is_start = found.kind == ArrowFinding::Kind::kStart;
    const uint64_t id = kFrameworkFlows + (found.waiting_id != 0 ? found.waiting_id : found.id);
    if (is_start || found.waiting_id != 0) {
      RETURN_IF_ERROR(
          WriteFlow(found.from, found.from_at_ns, xspace::Flow(kOut, id), found.category));
    }
    if (!is_start) {
      RETURN_IF_ERROR(WriteFlow(found.to, found.to_at_ns, xspace::Flow(kIn, id), found.category));
    }
  }
  return absl::OkStatus();
}

// A span that has been written, or has a flow already, cannot take another: an event in its place
// carries the flow and names the span's length.
absl::Status XSpaceExporter::WriteFlow(const ArrowSpan& span, uint64_t at_ns, uint64_t flow,
                                       std::string_view category) {
  const uint32_t lane = span.place % kLanesOfRow;
  const Line& line = LineOf(span.place / kLanesOfRow, lane);
  PlaneBuffer& plane = *hosts_[line.place.host].planes[line.place.plane];
  if (plane.AttachFlow(line.lanes[lane], span.number, flow)) return absl::OkStatus();
  return Add(line.place, line.lanes[lane],
             {.name = std::string(category), .start_ns = SinceBegin(at_ns), .flow = flow},
             {{kSpanDurationStat, ValueType::kUint, span.end_ns - span.start_ns, {}}});
}

absl::Status XSpaceExporter::WriteCounterAt(const TimelineRecord& record, const Place& place) {
  Item item{.name = CounterName(record), .start_ns = SinceBegin(record.start_ns)};
  const ShapeKey* about = nullptr;
  const uint64_t* cpu = FindAttribute(record, KeyScope::kData, kHostCpuIdKey, &about);
  if (cpu != nullptr) item.name += " " + AttributeText(*about, *cpu, record.names->strings);
  std::vector<EventAttribute> series;
  const auto& keys = record.start().keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!IsCounterValue(keys[i]) || keys[i].name == kHostDurationNsKey) continue;
    series.push_back({keys[i].name, keys[i].type, record.values[i], {}});
  }
  // One event for each value: the viewer stacks the values of one event and names only the first,
  // which would put bytes on top of percent.
  for (const EventAttribute& one : series) {
    Item of_one = item;
    if (series.size() > 1) of_one.name += " " + std::string(one.name);
    RETURN_IF_ERROR(Add(place, SideLine(place, "_counters_"), of_one, {one}));
  }
  return absl::OkStatus();
}

absl::Status XSpaceExporter::WriteLosses() {
  for (const LossInstant& instant : TraceLosses(*header_)) {
    const uint32_t stream = instant.stream;
    const Loss& loss = instant.loss;
    const std::string identity = ToString(header_->streams[stream].description.identity);
    const Place place = PlaceOf(rows_.ProcessOf(stream));
    RETURN_IF_ERROR(
        Add(place, SideLine(place, "losses"),
            {.name = std::string(instant.name()), .start_ns = SinceBegin(instant.at_ns)},
            {{"stream", ValueType::kString, 0, identity},
             {"place", ValueType::kString, 0, ToString(loss.place)},
             {"reason", ValueType::kString, 0, ToString(loss.reason)},
             {"events", ValueType::kUint, loss.events, {}},
             {"events_unknown", ValueType::kBool, loss.events_unknown ? 1u : 0u, {}},
             {"detail", ValueType::kString, 0, loss.detail}}));
  }
  return absl::OkStatus();
}

// Writes the largest planes first, until half of the buffers is free.
absl::Status XSpaceExporter::FlushPlanes() {
  std::vector<std::pair<Host*, PlaneBuffer*>> planes;
  for (Host& host : hosts_) {
    if (host.file == nullptr && hosts_open_ >= kHostsOpenMax) continue;
    for (const auto& plane : host.planes) {
      if (plane->events() > 0) planes.emplace_back(&host, plane.get());
    }
  }
  std::stable_sort(planes.begin(), planes.end(), [](const auto& a, const auto& b) {
    return a.second->buffered_bytes() > b.second->buffered_bytes();
  });
  for (const auto& [host, plane] : planes) {
    if (buffered_bytes_ <= options_.buffered_bytes_max / 2) break;
    if (host->file == nullptr && hosts_open_ >= kHostsOpenMax) continue;
    RETURN_IF_ERROR(FlushPlane(*host, *plane));
  }
  return absl::OkStatus();
}

// In host.bytes, the estimate for the buffer is replaced by the size of the message.
absl::Status XSpaceExporter::FlushPlane(Host& host, PlaneBuffer& plane) {
  const size_t buffered = plane.buffered_bytes();
  std::string space;
  protozero::pbf_writer(space).add_message(xspace::space::kPlanes, plane.TakeBytes());
  buffered_bytes_ -= buffered;
  host.bytes -= std::min<uint64_t>(host.bytes, buffered);
  host.bytes += space.size();
  return WriteTo(host, space);
}

absl::Status XSpaceExporter::WriteTo(Host& host, std::string_view bytes) {
  if (host.file == nullptr) {
    ASSIGN_OR_RETURN(host.file, files_.Open(host.file_name));
    ++hosts_open_;
  }
  bytes_written_ += bytes.size();
  return host.file->Write(bytes);
}

// The environment plane, the warnings and the host's name are known only at the end.
absl::Status XSpaceExporter::FinishHost(Host& host, const std::vector<std::string>& warnings) {
  for (const auto& plane : host.planes) {
    if (plane->events() > 0) RETURN_IF_ERROR(FlushPlane(host, *plane));
  }
  std::string rest;
  const std::string_view verdict =
      header_->certificate == nullptr ? std::string_view() : header_->certificate->verdict;
  AppendEnvironmentPlane(origin_ns_, end_ns_, verdict, static_cast<int64_t>(host.planes.size() + 1),
                         rest);
  protozero::pbf_writer space(rest);
  for (const std::string& warning : warnings) space.add_string(xspace::space::kWarnings, warning);
  // The viewer identifies the host by this part of the file's name.
  const size_t slash = host.file_name.rfind('/') + 1;
  const size_t length = host.file_name.size() - slash - std::string_view(".xplane.pb").size();
  space.add_string(xspace::space::kHostnames, host.file_name.substr(slash, length));
  RETURN_IF_ERROR(WriteTo(host, rest));
  RETURN_IF_ERROR(host.file->Close());
  host.file.reset();
  --hosts_open_;
  return absl::OkStatus();
}

absl::Status XSpaceExporter::Finish(ExportSummary& summary) {
  // Rows of the last spans first, then warnings, which every file repeats.
  while (auto waiting = waiting_.TakeRest()) RETURN_IF_ERROR(EndWait(*waiting, {}));
  waiting_.Warn(summary);
  for (const Host& host : hosts_) {
    if (host.left_out == 0) continue;
    summary.warnings.push_back(fmt::format(
        "{} events of {} from {} on are omitted, because its file would exceed the {} MiB that "
        "viewers load; export a shorter window, or fewer event types",
        host.left_out, host.instance_id, VendorTimeText(host.left_out_from_ns),
        options_.host_bytes_max >> 20));
  }
  if (squeezed_ > 0) {
    summary.warnings.push_back(fmt::format(
        "{} spans are shown without their length (squeezed_duration_ns), because more spans "
        "overlap on their row than a trace has lanes",
        squeezed_));
  }
  if (shortened_ > 0) {
    summary.warnings.push_back(fmt::format(
        "{} spans are longer than the 106 days that this format can represent, and are shown "
        "shorter (shortened_duration_ns)",
        shortened_));
  }
  if (executions_) AddWarnings(executions_->counts().Warnings(), summary);
  AddWarnings(arrows_.Warnings(), summary);
  std::vector<std::string> warnings;
  ForEachWarning(*header_, summary.warnings, [&](std::string_view message, std::string_view) {
    if (warnings.size() >= kWarningsInFileMax) return;
    AppendRepairedUtf8(message, warnings.emplace_back());
  });
  // One after the other, so that no two files need to be open at the end.
  for (Host& host : hosts_) RETURN_IF_ERROR(FinishHost(host, warnings));
  return absl::OkStatus();
}

}  // namespace neurontrace
