// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/chrome/chrome_exporter.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/export/capture_warnings.h"
#include "aggregator/export/clock_report.h"
#include "aggregator/export/json/json_members.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/rows/loss_instants.h"
#include "aggregator/export/rows/row_names.h"
#include "aggregator/timeline/framework_names.h"
#include "lib/base/status.h"
#include "lib/trace/event_json.h"
#include "lib/trace/fidelity.h"
#include "lib/trace/host_samples.h"

namespace neurontrace {
namespace {

// How it works: every event is formatted as one line when its turn in the timeline comes. Only
// spans whose stop is in a later chunk are kept, as text, until the stop completes them. Processes
// and threads are described in the line before their first event. docs/formats/chrome_json.md
// defines the keys.

// Readers in JavaScript hold numbers as doubles.
constexpr uint64_t kDoubleExactMax = uint64_t{1} << 53;

// Returns whether a reader that stores the number as a double gets it unchanged. A kInt is always
// negative, see lib/trace/event.h.
bool IsExact(ValueType type, uint64_t value) {
  if (type == ValueType::kUint) return value <= kDoubleExactMax;
  if (type == ValueType::kInt) return 0 - value <= kDoubleExactMax;  // a negative one's magnitude
  return true;
}

// Text that is collected before the sink is called.
constexpr size_t kChromeFlushBytes = 256u << 10;
constexpr uint64_t kMicrosecondNs = 1'000;
// The category of events that this program adds, and that of arrows in framework files.
constexpr std::string_view kOwnCategory = "neurontrace";
constexpr std::string_view kFrameworkArrows = "framework";

// Flow events of the Trace Event Format.
char PhaseOf(LinkRole role) {
  switch (role) {
    case LinkRole::kStart:
      return 's';
    case LinkRole::kStep:
      return 't';
    case LinkRole::kEnd:
      break;
  }
  return 'f';
}

}  // namespace

void AppendMicroseconds(int64_t ns, std::string& out) {
  // Unsigned, because the magnitude of INT64_MIN does not fit the signed type.
  uint64_t rest = static_cast<uint64_t>(ns);
  if (ns < 0) {
    out += '-';
    rest = 0 - rest;
  }
  fmt::format_to(std::back_inserter(out), "{}.{:03}", rest / 1'000, rest % 1'000);
}

void AppendArgument(const EventAttribute& attribute, std::string& out) {
  AppendJsonKey(attribute.name, out);
  AppendArgumentValue(attribute, out);
}

// A text of type JSON that is not valid JSON would make the whole file unreadable, so it becomes a
// string.
void AppendArgumentValue(const EventAttribute& attribute, std::string& out) {
  const bool is_json = attribute.type == ValueType::kJson && IsJson(attribute.text);
  if (is_json) {
    out += attribute.text;
  } else if (attribute.type == ValueType::kString || attribute.type == ValueType::kJson) {
    AppendAsJsonString(attribute.text, out);
  } else if (IsExact(attribute.type, attribute.value)) {
    AppendJsonValue(attribute.type, {attribute.value, {}}, out);
  } else {
    out += '"';
    AppendJsonValue(attribute.type, {attribute.value, {}}, out);
    out += '"';
  }
}

void AppendCounterValue(std::string_view name, const ShapeKey& key, uint64_t value,
                        std::string& out) {
  AppendJsonKey(name, out);
  AppendJsonValue(key.type, {value, {}}, out);
}

// The file has the losses and the certificate at its front: readers accept events in any order.
absl::Status ChromeExporter::Begin(const TimelineHeader& header) {
  BeginRows(header);
  waiting_.Begin(header);
  // Times count from here: as doubles of microseconds since 1970 they would lose the nanoseconds.
  base_ns_ = header.begin_ns / kMicrosecondNs * kMicrosecondNs;
  attributes_.Begin(header);
  if (!no_flows_) executions_.emplace(header.streams, header.framework_names);
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  clock_description_ = clocks.Describe();
  clocks_json_ = clocks.Json();
  out_ = fmt::format("{{\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":{},\"traceEvents\":[",
                     base_ns_);
  if (header.certificate != nullptr) {
    WriteCertificate(std::max(header.begin_ns, header.filter->window_start_ns));
  }
  WriteLosses();
  return Flush();
}

uint32_t ChromeExporter::Placed(const TimelineRecord& record, uint64_t, Placement& placement) {
  // A lane is described only if something may refer to it before its first event is written.
  const bool can_have_arrows =
      !no_flows_ && record.kind == RecordKind::kSpan && attributes_.is_framework(record);
  return can_have_arrows ? TidOf(placement.row, placement.lane) : 0;
}

// The span is written only now, so that it can be later in the file than spans that begin after it.
absl::Status ChromeExporter::WriteStop(const TimelineRecord& record) {
  auto lines = waiting_.Take(record.span_id);
  if (!lines) return absl::OkStatus();
  AppendStopArguments(attributes_.ForStop(record), lines->arguments);
  Emit(*lines);
  return absl::OkStatus();
}

absl::Status ChromeExporter::WriteEvent(const TimelineRecord& record, uint64_t number,
                                        const Placement& placement) {
  if (record.kind == RecordKind::kSpan) {
    WriteSpan(record, number, placement);
  } else {
    WriteInstant(record, placement.row);
  }
  return absl::OkStatus();
}

absl::Status ChromeExporter::EndBatch(const TimelineBatch& batch) {
  while (const auto late = waiting_.TakeLate(batch.begin_ns)) {
    Emit(*late);
    RETURN_IF_ERROR(FlushIfLarge());
  }
  return absl::OkStatus();
}

// Spans that overlap on one row without one enclosing the other would be drawn wrongly. The second
// goes to a lane of its own, or becomes an asynchronous event if there are too many.
void ChromeExporter::WriteSpan(const TimelineRecord& record, uint64_t number,
                               const Placement& placement) {
  tid_ = TidOf(placement.row, placement.lane);
  const std::string_view name = attributes_.NameOf(record);
  const std::string_view category = attributes_.CategoryOf(record);
  // Formats the event up to its arguments first, because these may have to wait for the stop.
  lines_ = {};
  // Asynchronous events may overlap freely, because they are not nested.
  AppendHead(placement.is_squeezed ? "b" : "X", name, category, record.start_ns, lines_.head);
  if (!placement.is_squeezed) {
    lines_.head += ",\"dur\":";
    AppendMicroseconds(static_cast<int64_t>(record.end_ns - record.start_ns), lines_.head);
  } else {
    AppendJsonNumber("id", next_async_, lines_.head);
    AppendHead("e", name, category, record.end_ns, lines_.after);
    AppendJsonNumber("id", next_async_++, lines_.after);
    lines_.after += '}';
  }
  AppendArguments(attributes_.Of(record), lines_.arguments);
  if (executions_) AppendArrows(record, lines_.after);
  // Points must directly follow their span, see PlaceArrows.
  if (const auto points = points_.find(number); points != points_.end()) {
    if (!lines_.after.empty()) lines_.after += ",\n";
    lines_.after += points->second;
  }
  // From here on the event is complete, except for the attributes of a stop in a later chunk.
  const size_t bytes = lines_.head.size() + lines_.arguments.size() + lines_.after.size();
  if (waiting_.Admits(record, bytes)) {
    waiting_.Add(record, std::move(lines_), bytes);
  } else {
    Emit(lines_);
  }
}

// All points of an event have its start as their time, with which readers find the enclosing slice.
void ChromeExporter::AppendArrows(const TimelineRecord& record, std::string& out) {
  for (const LinkPoint& point : executions_->Of(record)) {
    if (!out.empty()) out += ",\n";
    const char phase = PhaseOf(point.role);
    const std::string_view category = FrameworkLinks::NameOf(point.kind);
    AppendHead({&phase, 1}, category, category, record.start_ns, out);
    AppendJsonNumber("id", point.id, out);
    // Binds the arrow's end to the enclosing slice instead of the next one.
    if (phase == 'f') out += ",\"bp\":\"e\"";
    out += '}';
  }
}

void ChromeExporter::WriteInstant(const TimelineRecord& record, uint32_t row) {
  tid_ = TidOf(row, 0);
  lines_ = {};
  AppendHead("i", attributes_.NameOf(record), attributes_.CategoryOf(record), record.start_ns,
             lines_.head);
  // The scope of the instant: its thread.
  lines_.head += ",\"s\":\"t\"";
  AppendArguments(attributes_.Of(record), lines_.arguments);
  Emit(lines_);
}

// An arrow has a point for its start and one for each end. Each finding gives one point, or both if
// the end was found before the start.
void ChromeExporter::PlaceArrows() {
  for (const ArrowFinding& found : arrows_.findings()) {
    // A span that has been written already can only be touched at the point's own time.
    const uint64_t from_ns = found.from.is_past ? found.from_at_ns : found.from.start_ns;
    if (found.kind == ArrowFinding::Kind::kStart) {
      WritePoint({'s', found.id, from_ns, found.from.number}, found.from, found.category);
    } else if (found.kind == ArrowFinding::Kind::kArrow && found.waiting_id == 0) {
      // An arrow must not end before it starts, or viewers omit it.
      const bool can_be_at_begin = !found.to.is_past && found.to.start_ns >= from_ns;
      uint64_t to_ns = can_be_at_begin ? found.to.start_ns : found.to_at_ns;
      uint64_t behind = found.to.number;
      if (to_ns == from_ns && found.from.number > found.to.number) {
        behind = found.from.number;
        // Past what begins between the two and has no length.
        if (to_ns + 1 < found.to.end_ns) ++to_ns;
      }
      WritePoint({'f', found.id, to_ns, behind}, found.to, found.category);
    } else if (found.kind == ArrowFinding::Kind::kArrow) {
      // The end stays where the file has it: at another time of its span, a further span may lie
      // within.
      ++arrows_backwards_;
      WritePoint({'s', found.waiting_id, from_ns, found.from.number}, found.from, found.category);
      WritePoint({'f', found.waiting_id, found.to_at_ns, found.from.number}, found.to,
                 found.category);
    }
  }
  arrows_.findings().clear();
}

void ChromeExporter::WritePoint(const ArrowPoint& point, const ArrowSpan& span,
                                std::string_view category) {
  tid_ = span.place;
  pid_ = pid_of_tid_[span.place];
  std::string line;
  AppendHead({&point.phase, 1}, category, kFrameworkArrows, point.at_ns, line);
  AppendJsonNumber("id", point.id, line);
  if (point.phase == 'f') line += ",\"bp\":\"e\"";
  line += '}';
  // The record has been written in an earlier batch: the point can only follow now.
  if (point.behind < batch_number_) return Line(line);
  std::string& points = points_[point.behind];
  if (!points.empty()) points += ",\n";
  points += line;
}

// All values of one event are one counter, as the framework wrote them.
absl::Status ChromeExporter::WriteCounter(const TimelineRecord& record) {
  pid_ = tid_ = PidOf(rows_.ProcessOf(record));
  lines_ = {};
  const auto& keys = record.start().keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    // Viewers cannot draw texts as a series.
    if (!IsCounterValue(keys[i])) continue;
    AppendCounterValue(keys[i].name, keys[i], record.values[i], lines_.arguments);
  }
  if (lines_.arguments.empty()) return absl::OkStatus();
  // Counters belong to processes: viewers ignore their thread.
  AppendHead("C", CounterName(record), attributes_.CategoryOf(record), record.start_ns,
             lines_.head);
  Emit(lines_);
  return absl::OkStatus();
}

// Each value is a counter of its own, because a viewer stacks the values of one counter.
absl::Status ChromeExporter::WriteHostCounter(const TimelineRecord& record) {
  pid_ = tid_ = PidOf(rows_.ProcessOf(record.stream));
  const ShapeKey* about = nullptr;
  // Samples of processors carry their number; those of memory have none.
  const uint64_t* cpu = FindAttribute(record, KeyScope::kData, kHostCpuIdKey, &about);
  std::string name(record.start().event_type);
  if (cpu != nullptr) name += " " + AttributeText(*about, *cpu, record.names->strings);
  const auto& keys = record.start().keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!IsCounterValue(keys[i]) || keys[i].name == kHostDurationNsKey) continue;
    lines_ = {};
    AppendHead("C", name + " " + std::string(keys[i].name), "host", record.start_ns, lines_.head);
    AppendCounterValue(keys[i].name, keys[i], record.values[i], lines_.arguments);
    Emit(lines_);
  }
  return absl::OkStatus();
}

// Writes each loss and suspension as an instant of its process. Called once, in Begin, because they
// are known beforehand.
void ChromeExporter::WriteLosses() {
  for (const LossInstant& instant : TraceLosses(*header_)) {
    const uint32_t stream = instant.stream;
    const Loss& loss = instant.loss;
    pid_ = PidOf(rows_.ProcessOf(stream));
    tid_ = pid_;
    lines_ = {};
    AppendHead("i", instant.name(), kOwnCategory, instant.at_ns, lines_.head);
    // The scope of the instant: the whole process.
    lines_.head += ",\"s\":\"p\"";
    std::string& out = lines_.arguments;
    AppendJsonText("stream", ToString(header_->streams[stream].description.identity), out);
    AppendJsonText("place", ToString(loss.place), out);
    AppendJsonText("reason", ToString(loss.reason), out);
    AppendArgument({"events", ValueType::kUint, loss.events, {}}, out);
    if (loss.events_unknown) AppendArgument({"events_unknown", ValueType::kBool, 1, {}}, out);
    if (loss.last_timestamp_ns > loss.first_timestamp_ns && loss.first_timestamp_ns != 0) {
      AppendArgument(
          {"gap_ns", ValueType::kUint, loss.last_timestamp_ns - loss.first_timestamp_ns, {}}, out);
    }
    if (!loss.detail.empty()) AppendJsonText("detail", loss.detail, out);
    Emit(lines_);
  }
}

// The certificate gets a process of its own, and is an instant of global scope, which viewers draw
// over all rows.
void ChromeExporter::WriteCertificate(uint64_t at_ns) {
  const Certificate& certificate = *header_->certificate;
  pid_ = tid_ = next_number_++;
  Describe("process_name", "neurontrace", false);
  lines_ = {};
  AppendHead("i", "certificate", kOwnCategory, at_ns, lines_.head);
  lines_.head += ",\"s\":\"g\"";
  std::string& out = lines_.arguments;
  const auto count = [&out](std::string_view name, uint64_t events) {
    AppendArgument({name, ValueType::kUint, events, {}}, out);
  };
  AppendJsonText("verdict", certificate.verdict, out);
  AppendArgument({"complete", ValueType::kBool, certificate.complete ? 1u : 0u, {}}, out);
  count("expected", certificate.account.expected);
  count("captured", certificate.account.captured);
  count("stored", certificate.account.stored);
  count("lost", certificate.account.lost);
  Emit(lines_);
}

void ChromeExporter::AppendHead(std::string_view phase, std::string_view name,
                                std::string_view category, uint64_t at_ns, std::string& out) {
  out += "{\"ph\":\"";
  out += phase;
  out += "\",\"name\":";
  AppendAsJsonString(name, out);
  if (!category.empty()) AppendJsonText("cat", category, out);
  AppendJsonNumber("pid", pid_, out);
  AppendJsonNumber("tid", tid_, out);
  out += ",\"ts\":";
  AppendMicroseconds(Since(at_ns), out);
}

void ChromeExporter::AppendArguments(const std::vector<EventAttribute>& attributes,
                                     std::string& out) {
  for (const EventAttribute& attribute : attributes) AppendArgument(attribute, out);
}

void ChromeExporter::AppendStopArguments(const std::vector<EventAttribute>& attributes,
                                         std::string& out) {
  JsonMembers members(out);
  for (const EventAttribute& attribute : attributes) {
    members.AppendFreeKey(attribute.name, "stop_");
    AppendArgumentValue(attribute, out);
  }
}

// The format's metadata events: "process_name", "process_labels", "process_sort_index" and the same
// for threads.
void ChromeExporter::Describe(std::string_view kind, std::string_view text, bool is_number) {
  std::string line = fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{",
                                 kind, pid_, tid_);
  if (is_number) {
    line += fmt::format("\"sort_index\":{}", text);
  } else {
    line += kind == "process_labels" ? "\"labels\":" : "\"name\":";
    AppendAsJsonString(text, line);
  }
  Line(line + "}}");
}

// Changes pid_ and tid_ if the process is new. Callers set both afterwards.
uint32_t ChromeExporter::PidOf(uint32_t process) {
  if (process >= pids_.size()) pids_.resize(process + 1);
  uint32_t& pid = pids_[process];
  if (pid != 0) return pid;
  pid = next_number_++;
  pid_ = tid_ = pid;
  const ExportProcess& about = rows_.process(process);
  Describe("process_name", about.label, false);
  if (!about.labels.empty()) Describe("process_labels", about.labels, false);
  Describe("process_sort_index", fmt::format("{}", rows_.order(about.stream)), true);
  return pid;
}

// Also sets pid_ to the row's process, whether or not the lane is new.
uint32_t ChromeExporter::TidOf(uint32_t row, uint32_t lane) {
  const ExportRow& about = rows_.row(row);
  const uint32_t pid = PidOf(about.process);
  pid_ = pid;
  uint32_t& tid = tids_[{row, lane}];
  if (tid != 0) return tid;
  tid = next_number_++;
  tid_ = tid;
  pid_of_tid_.resize(next_number_);
  pid_of_tid_[tid] = pid;
  Describe("thread_name",
           lane == 0 ? about.name : fmt::format("{} (lane {})", about.name, lane + 1), false);
  Describe("thread_sort_index", fmt::format("{}", about.order), true);
  return tid;
}

void ChromeExporter::Line(std::string_view text) {
  out_ += has_event_ ? ",\n" : "\n";
  has_event_ = true;
  out_ += text;
}

void ChromeExporter::Emit(const Lines& lines) {
  Line(lines.head);
  if (!lines.arguments.empty()) {
    out_ += ",\"args\":{";
    out_ += std::string_view(lines.arguments).substr(1);  // without the comma before the first
    out_ += '}';
  }
  out_ += '}';
  if (!lines.after.empty()) Line(lines.after);
}

// Closes the list of events and writes the rest of the file, which is known only at the end.
void ChromeExporter::AppendOtherData(const std::vector<std::string>& warnings) {
  out_ += "],\n\"otherData\":{\"producer\":";
  AppendAsJsonString(fmt::format("neurontrace {}", NEURONTRACE_VERSION), out_);
  AppendJsonText("capture_id", header_->capture->id.ToString(), out_);
  AppendJsonText("capture_name", header_->capture->name, out_);
  AppendJsonText("clock", clock_description_, out_);
  AppendJsonKey("clocks", out_);
  out_ += clocks_json_;
  AppendJsonKey("warnings", out_);
  out_ += '[';
  bool is_first = true;
  ForEachWarning(*header_, warnings, [&](std::string_view message, std::string_view category) {
    out_ += is_first ? "\n{\"message\":" : ",\n{\"message\":";
    is_first = false;
    AppendAsJsonString(message, out_);
    AppendJsonText("category", category, out_);
    out_ += '}';
  });
  out_ += ']';
  if (!header_->certificate_json.empty()) {
    AppendJsonKey("certificate", out_);
    out_ += header_->certificate_json;
  }
  out_ += "}}\n";
}

// Warnings of this exporter are added before the list of warnings is written.
absl::Status ChromeExporter::Finish(ExportSummary& summary) {
  while (const auto lines = waiting_.TakeRest()) {
    Emit(*lines);
    RETURN_IF_ERROR(FlushIfLarge());
  }
  waiting_.Warn(summary);
  if (squeezed_ > 0) {
    summary.warnings.push_back(fmt::format(
        "{} spans are shown as asynchronous events, because more spans overlap on their row than a "
        "trace has lanes",
        squeezed_));
  }
  if (executions_) AddWarnings(executions_->counts().Warnings(), summary);
  AddWarnings(arrows_.Warnings(), summary);
  if (arrows_backwards_ > 0) {
    summary.warnings.push_back(
        fmt::format("{} arrows of framework traces end before they start; viewers that read events "
                    "in time order do not draw them",
                    arrows_backwards_));
  }
  AppendOtherData(summary.warnings);
  return Flush();
}

absl::Status ChromeExporter::FlushIfLarge() {
  return out_.size() >= kChromeFlushBytes ? Flush() : absl::OkStatus();
}

absl::Status ChromeExporter::Flush() {
  const absl::Status status = sink_.Write(out_);
  bytes_flushed_ += out_.size();
  out_.clear();
  return status;
}

}  // namespace neurontrace
