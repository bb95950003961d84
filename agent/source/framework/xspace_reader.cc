// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xspace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/limits.h"

// How it works: a state machine (Impl::State) walks through the file plane by plane, and through
// each plane twice: for its names, which may come after its lines, and then for its lines. Only the
// names of one plane are kept. Messages are delimited by their lengths, so damage costs the
// innermost message whose end is known.
namespace neurontrace {
namespace {

// Fields that one call looks at.
constexpr int kFieldsPerCall = 512;
// Fields of one event, or of one entry of a plane's maps. Real ones have some hundreds at most.
constexpr uint32_t kFieldsPerMessage = 8'192;
constexpr size_t kNameOverheadBytes = 128;  // of one in a table, about
// Picoseconds are the unit of offsets and durations in xplane.proto.
constexpr int64_t kPsPerNs = 1'000;
constexpr std::string_view kHostPlanePrefix = "/host:";

}  // namespace

// A text with readable bytes after its end, as ShapeCache requires.
class XSpaceName {
 public:
  XSpaceName() : XSpaceName(std::string()) {}
  explicit XSpaceName(std::string text) : bytes_(std::move(text)), size_(bytes_.size()) {
    constexpr size_t kPadding = 8;  // whoever compares short texts by whole words reads so far
    bytes_.append(kPadding, '\0');
  }
  std::string_view view() const { return {bytes_.data(), size_}; }
  bool empty() const { return size_ == 0; }

 private:
  std::string bytes_;
  size_t size_;
};

struct XSpaceReader::Impl {
  enum class State : uint8_t {
    kSpace,    // between planes
    kNames,    // collects a plane's names, passing over its lines
    kProcess,  // gives out its name
    kPlane,    // looks for its lines
    kLine,     // collects a line's own fields, passing over its events
    kThread,   // gives out its name
    kEvents,
    kEnd,
  };

  // What an event takes from its metadata; texts are kept once for each plane.
  struct EventName {
    XSpaceName name;
    XSpaceName long_name;
    std::vector<XSpaceStat> stats;
  };

  struct Plane {
    uint64_t begin = 0;
    uint64_t end = 0;
    XSpaceName name;
    bool has_lines = false;
    size_t name_bytes = 0;
    absl::flat_hash_map<int64_t, EventName> event_names;
    absl::flat_hash_map<int64_t, XSpaceName> stat_names;

    bool is_host() const { return name.view().starts_with(kHostPlanePrefix); }
  };

  struct Line {
    uint64_t begin = 0;
    uint64_t end = 0;
    XSpaceLine head;
    XSpaceName name;
    std::optional<uint32_t> thread_id;  // the kernel's, if the line's id is another
  };

  // One event as it is in its message.
  struct Event {
    int64_t metadata_id = 0;
    int64_t offset_ps = 0;
    int64_t duration_ps = 0;
    bool has_occurrences = false;
    size_t stats = 0;  // of `stats_`
  };

  Impl(XSpaceInput input, const XSpaceFacts& about, uint64_t first, XSpaceThreads owner)
      : wire(std::move(input)), facts(about), first_element(first), threads(std::move(owner)) {
    last_time_ns = facts.first_time_ns();
  }

  // Elements that an earlier agent has stored are read and skipped.
  Kind Next() {
    for (int i = 0; i < kFieldsPerCall; ++i) {
      const uint64_t begin = wire.position();
      const State state_before = state;
      const std::optional<Kind> kind = Step();
      // The file changed. The step is undone, so that the caller may try again once it has checked
      // the content.
      if (absl::IsAborted(wire.status())) {
        wire.TryAgain(begin);
        state = state_before;
        return Kind::kChanged;
      }
      if (!kind) continue;
      if (*kind == Kind::kEnd) return *kind;
      if (position++ >= first_element) return *kind;
    }
    return Kind::kNotYet;
  }

  // One field or one row, by the state. Returns nothing if no element results.
  std::optional<Kind> Step() {
    wire.Allow(kFieldsPerMessage);
    switch (state) {
      case State::kSpace:
        return StepSpace();
      case State::kNames:
        return StepNames();
      case State::kProcess:
        state = State::kPlane;
        return NameRow("process_name", plane.name.view(), false);
      case State::kPlane:
        return StepPlane();
      case State::kLine:
        return StepLine();
      case State::kThread:
        state = State::kEvents;
        wire.Seek(line.begin);
        return NameRow("thread_name", line.name.view(), true);
      case State::kEvents:
        return StepEvents();
      case State::kEnd:
        break;
    }
    return Kind::kEnd;
  }

  // Looks for the next plane.
  std::optional<Kind> StepSpace() {
    if (wire.position() == wire.size()) {
      state = State::kEnd;
      return Kind::kEnd;
    }
    XSpaceWire::Field about;
    if (!wire.Next(wire.size(), about)) return LoseFile("the file is truncated or damaged");
    if (about.number == xspace_field::kSpacePlanes && about.has_length) {
      plane = {.begin = wire.position(), .end = about.end};
      ++planes;
      state = State::kNames;
    } else if (about.has_length) {
      wire.Seek(about.end);
    }
    return std::nullopt;
  }

  // A plane's names may come after its lines, so a plane is walked through twice.
  std::optional<Kind> StepNames() {
    // All names are known: back to the beginning of the plane for its lines.
    if (wire.position() == plane.end) {
      if (!plane.has_lines) {
        state = State::kSpace;  // has properties of the session only
        return std::nullopt;
      }
      wire.Seek(plane.begin);
      state = State::kProcess;
      return std::nullopt;
    }
    XSpaceWire::Field about;
    if (!wire.Next(plane.end, about)) return LosePlane();
    if (!about.has_length) return std::nullopt;
    std::string text;
    XSpaceMetadata entry;
    bool is_good = true;
    switch (about.number) {
      case xspace_field::kPlaneName:
        is_good = wire.Text(about, limits::kStringBytesMax, text);
        plane.name = XSpaceName(std::move(text));
        break;
      case xspace_field::kPlaneLines:
        plane.has_lines = true;
        break;
      case xspace_field::kPlaneEventMetadata:
        is_good = ReadXSpaceMapEntry(wire, about.end, entry);
        if (is_good) AddEventName(std::move(entry));
        break;
      case xspace_field::kPlaneStatMetadata:
        is_good = ReadXSpaceMapEntry(wire, about.end, entry);
        if (is_good) AddStatName(std::move(entry));
        break;
      default:
        break;
    }
    if (!is_good) return LosePlane();
    wire.Seek(about.end);
    return std::nullopt;
  }

  // Returns false if the names of the plane would exceed their limit, else counts the bytes.
  bool HasRoom(size_t bytes) {
    if (plane.name_bytes + bytes > limits::kXSpaceNameBytesMax) return false;
    plane.name_bytes += bytes;
    return true;
  }

  // Charges the entry to the plane's budget first. A name that does not fit is left out, and its
  // events become losses with that reason.
  void AddEventName(XSpaceMetadata entry) {
    size_t bytes = kNameOverheadBytes + entry.name.size() + entry.display_name.size();
    for (const XSpaceStat& stat : entry.stats) bytes += sizeof(XSpaceStat) + stat.text.size();
    if (!HasRoom(bytes)) {
      too_many_names = true;
      return;
    }
    EventName& name = plane.event_names[entry.id];
    const bool has_both = !entry.display_name.empty() && entry.display_name != entry.name;
    name.name = XSpaceName(entry.display_name.empty() ? entry.name : entry.display_name);
    name.long_name = XSpaceName(has_both ? std::move(entry.name) : std::string());
    name.stats = std::move(entry.stats);
  }

  // The same for the name of a stat; a stat whose name is left out gets a made-up one.
  void AddStatName(XSpaceMetadata entry) {
    if (!HasRoom(kNameOverheadBytes + entry.name.size())) {
      too_many_names = true;
      return;
    }
    plane.stat_names[entry.id] = XSpaceName(std::move(entry.name));
  }

  // Second walk through a plane: looks for its next line.
  std::optional<Kind> StepPlane() {
    if (wire.position() == plane.end) {
      plane = {};
      too_many_names = false;
      state = State::kSpace;
      return std::nullopt;
    }
    XSpaceWire::Field about;
    if (!wire.Next(plane.end, about)) return LosePlane();  // it changed under the reader
    if (about.number == xspace_field::kPlaneLines && about.has_length) {
      line = {.begin = wire.position(), .end = about.end};
      state = State::kLine;
    } else if (about.has_length) {
      wire.Seek(about.end);
    }
    return std::nullopt;
  }

  // Reads the fields of a line to its end, as its name may follow its events.
  std::optional<Kind> StepLine() {
    if (wire.position() == line.end) {
      XSpaceLine& head = line.head;
      line.name = XSpaceName(head.display_name.empty() ? head.name : head.display_name);
      if (plane.is_host()) line.thread_id = threads.KernelId(head.id);
      state = State::kThread;
      return std::nullopt;
    }
    XSpaceWire::Field about;
    if (!wire.Next(line.end, about) || !ReadXSpaceLineField(wire, about, line.head)) {
      return LoseLine();
    }
    if (about.has_length) wire.Seek(about.end);
    return std::nullopt;
  }

  // Reads one event for each call. The message's end is known before it is parsed, so a damaged
  // event costs only itself.
  std::optional<Kind> StepEvents() {
    if (wire.position() == line.end) {
      state = State::kPlane;
      return std::nullopt;
    }
    XSpaceWire::Field about;
    if (!wire.Next(line.end, about)) return LoseLine();
    if (!about.has_length) return std::nullopt;
    if (about.number != xspace_field::kLineEvents) {
      wire.Seek(about.end);
      return std::nullopt;
    }
    const uint64_t begin = wire.position();
    if (about.end - begin > limits::kFrameworkEventBytesMax) {
      wire.Seek(about.end);
      return LoseEvent(LossReason::kLimit, "exceeds the size limit");
    }
    Event read;
    const bool is_good = ReadEvent(about.end, read);
    if (!wire.status().ok()) return LoseFile("");
    wire.Seek(about.end);
    if (!is_good) return LoseEvent(LossReason::kMalformed, "is damaged");
    return GiveOut(read);
  }

  // Reads the message of one event; returns false if it is damaged.
  bool ReadEvent(uint64_t end, Event& read) {
    while (wire.position() < end) {
      XSpaceWire::Field about;
      if (!wire.Next(end, about)) return false;
      const bool is_stat = about.number == xspace_field::kEventStats;
      if (about.number <= xspace_field::kEventOccurrences && about.has_length != is_stat) {
        return false;
      }
      switch (about.number) {
        case xspace_field::kEventMetadataId:
          read.metadata_id = static_cast<int64_t>(about.value);
          break;
        case xspace_field::kEventOffsetPs:
          read.offset_ps = static_cast<int64_t>(about.value);
          break;
        case xspace_field::kEventDurationPs:
          read.duration_ps = static_cast<int64_t>(about.value);
          break;
        case xspace_field::kEventOccurrences:
          read.has_occurrences = true;
          break;
        case xspace_field::kEventStats:
          if (read.stats == limits::kAttributesPerEventMax) return true;  // refused as too many
          if (read.stats == stats.size()) stats.emplace_back();
          if (!ReadXSpaceStat(wire, about.end, stats[read.stats++])) return false;
          break;
        default:
          break;
      }
      if (about.has_length) wire.Seek(about.end);
    }
    return true;
  }

  // Turns a message into an event in the vocabulary of lib/trace, or into a loss with the reason.
  std::optional<Kind> GiveOut(const Event& read) {
    // Aggregated events have a number of occurrences in place of an offset (xplane.proto,
    // XEvent.data).
    if (read.has_occurrences) {
      return LoseEvent(LossReason::kMalformed, "is an aggregate of several events and has no time");
    }
    const auto name = plane.event_names.find(read.metadata_id);
    if (name == plane.event_names.end()) {
      return too_many_names
                 ? LoseEvent(LossReason::kLimit, "has a name beyond the limit of its plane")
                 : LoseEvent(LossReason::kMalformed, "has a name that its plane does not list");
    }
    const auto time_ns = TimeOf(read.offset_ps);
    if (!time_ns) return LoseEvent(LossReason::kMalformed, "has a time out of range");
    last_time_ns = *time_ns;
    Start(Phase::kComplete);
    bool fits = Add("name", KeyScope::kTop, ValueType::kString, 0, name->second.name.view());
    fits = fits && AddRow() && AddLength(read);
    if (fits && !name->second.long_name.empty()) {
      fits =
          Add("long_name", KeyScope::kData, ValueType::kString, 0, name->second.long_name.view());
    }
    for (size_t i = 0; fits && i < read.stats; ++i) fits = AddStat(stats[i]);
    for (size_t i = 0; fits && i < name->second.stats.size(); ++i) {
      fits = AddStat(name->second.stats[i]);
    }
    if (!fits) return LoseEvent(LossReason::kLimit, "has more attributes than the limit");
    return Kind::kEvent;
  }

  // In 128 bits: a time of the epoch in picoseconds exceeds 64.
  std::optional<uint64_t> TimeOf(int64_t offset_ps) const {
    __int128 ps = static_cast<__int128>(line.head.timestamp_ns) * kPsPerNs + offset_ps;
    // A line has times since the session's begin, or times of the epoch.
    const bool is_since_start =
        line.head.timestamp_ns < static_cast<int64_t>(kWallClockMinNs) && facts.start_ns;
    if (is_since_start) ps += static_cast<__int128>(*facts.start_ns) * kPsPerNs;
    if (ps < 0 || ps / kPsPerNs > INT64_MAX) return std::nullopt;
    return static_cast<uint64_t>(ps / kPsPerNs);
  }

  // Begins a new event with the time of the last one.
  void Start(Phase phase) {
    event.shape.event_type = plane.is_host() ? "xla_host" : "xla_device";
    event.shape.phase = phase;
    event.shape.present = FieldBit(Field::kTimestamp);
    event.shape.quoted = 0;
    event.shape.keys.clear();
    event.values.clear();
    event.fields = {};
    event.fields.timestamp_ns = last_time_ns;
  }

  // Adds an attribute; returns false if the event has as many as it may have.
  bool Add(std::string_view name, KeyScope scope, ValueType type, uint64_t bits,
           std::string_view text) {
    if (event.values.size() == limits::kAttributesPerEventMax) return false;
    event.shape.keys.push_back({name, type, scope});
    event.values.push_back({bits, text});
    return true;
  }

  // Adds the process and the thread by which an event names its row.
  bool AddRow() {
    if (!AddProcess()) return false;
    if (line.head.id < 0 && !line.thread_id) {
      return Add("tid", KeyScope::kTop, ValueType::kInt, static_cast<uint64_t>(line.head.id), {});
    }
    event.shape.present |= FieldBit(Field::kThreadId);
    event.fields.thread_id = line.thread_id.value_or(static_cast<uint64_t>(line.head.id));
    return true;
  }
  // Adds the process: its id for host planes, else the plane's name.
  bool AddProcess() {
    if (plane.is_host() && facts.process_id) {
      return Add("pid", KeyScope::kTop, ValueType::kUint, *facts.process_id, {});
    }
    return Add("pid", KeyScope::kTop, ValueType::kString, 0, plane.name.view());
  }

  // Picoseconds are kept beside the nanoseconds only where they add something.
  bool AddLength(const Event& read) {
    const int64_t length_ps = std::max<int64_t>(read.duration_ps, 0);
    bool fits = Add("dur_ns", KeyScope::kTop, ValueType::kUint,
                    static_cast<uint64_t>(length_ps / kPsPerNs), {});
    if (read.offset_ps % kPsPerNs != 0) fits = fits && AddPicoseconds("offset_ps", read.offset_ps);
    if (length_ps % kPsPerNs != 0 || read.duration_ps < 0) {
      fits = fits && AddPicoseconds("duration_ps", read.duration_ps);
    }
    return fits;
  }
  bool AddPicoseconds(std::string_view name, int64_t ps) {
    return Add(name, KeyScope::kTop, ps < 0 ? ValueType::kInt : ValueType::kUint,
               static_cast<uint64_t>(ps), {});
  }

  // Adds a stat as an attribute, with its name and a text that it refers to from the plane's table.
  bool AddStat(const XSpaceStat& stat) {
    const auto name = plane.stat_names.find(stat.metadata_id);
    // A stat without a name is kept under a made-up one rather than dropped.
    const std::string_view key =
        name == plane.stat_names.end() ? std::string_view("unnamed_stat") : name->second.view();
    std::string_view text = stat.text;
    if (stat.is_reference) {
      const auto value = plane.stat_names.find(static_cast<int64_t>(stat.bits));
      text = value == plane.stat_names.end() ? "unnamed" : value->second.view();
    }
    const bool is_text = stat.type == ValueType::kString;
    return Add(key, KeyScope::kData, stat.type, is_text ? 0 : stat.bits, is_text ? text : "");
  }

  // Gives out a metadata event with the name of a process or a thread, as Chrome's JSON has them.
  std::optional<Kind> NameRow(std::string_view what, std::string_view name, bool is_thread) {
    Start(Phase::kMetadata);
    Add("name", KeyScope::kTop, ValueType::kString, 0, what);
    is_thread ? AddRow() : AddProcess();
    Add("name", KeyScope::kData, ValueType::kString, 0, name);
    return Kind::kEvent;
  }

  // Every loss counts as an element, so that positions stay the same when the file is read again.
  Kind Lose(LossReason reason, bool is_one, std::string_view words) {
    loss = {};
    loss.place = LossPlace::kDecode;
    loss.reason = reason;
    loss.events = is_one ? 1 : 0;
    loss.events_unknown = !is_one;
    loss.detail = fmt::format("element {}, to byte {}: {}", position, wire.position(), words);
    if (loss.detail.size() > limits::kDetailBytesMax) loss.detail.resize(limits::kDetailBytesMax);
    return Kind::kLoss;
  }
  std::optional<Kind> LoseEvent(LossReason reason, std::string_view why) {
    return Lose(reason, true, fmt::format("the event {}", why));
  }
  // The rest of a damaged line cannot be delimited; the next line begins at a known place.
  std::optional<Kind> LoseLine() {
    if (!wire.status().ok()) return LoseFile("");
    const Kind kind = Lose(LossReason::kMalformed, false,
                           fmt::format("a line of plane {} is damaged from here on", planes));
    wire.Seek(line.end);
    state = State::kPlane;
    return kind;
  }
  // The next plane begins at a known place, too.
  std::optional<Kind> LosePlane() {
    if (!wire.status().ok()) return LoseFile("");
    const Kind kind =
        Lose(LossReason::kMalformed, false,
             fmt::format("plane {} is damaged; its remaining events are not read", planes));
    wire.Seek(plane.end);
    plane = {};
    state = State::kSpace;
    return kind;
  }
  // Nothing behind this place can be delimited, or the file cannot be read.
  std::optional<Kind> LoseFile(std::string why) {
    state = State::kEnd;
    if (!wire.status().ok()) why = std::string(wire.status().message());
    return Lose(LossReason::kMalformed, false, why);
  }

  XSpaceWire wire;
  const XSpaceFacts facts;
  const uint64_t first_element;
  const XSpaceThreads threads;
  State state = State::kSpace;
  uint64_t position = 0;
  uint64_t planes = 0;  // seen so far
  Plane plane;
  bool too_many_names = false;  // of the plane at hand
  Line line;
  std::vector<XSpaceStat> stats;  // of the event at hand, and spare ones
  uint64_t last_time_ns = 0;
  FrameworkEvent event;
  Loss loss;
};

XSpaceReader::XSpaceReader(XSpaceInput input, const XSpaceFacts& facts, uint64_t first_element,
                           XSpaceThreads threads)
    : impl_(std::make_unique<Impl>(std::move(input), facts, first_element, std::move(threads))) {}
XSpaceReader::~XSpaceReader() = default;
XSpaceReader::XSpaceReader(XSpaceReader&&) noexcept = default;
XSpaceReader& XSpaceReader::operator=(XSpaceReader&&) noexcept = default;

XSpaceReader::Kind XSpaceReader::Next() { return impl_->Next(); }
const FrameworkEvent& XSpaceReader::event() const { return impl_->event; }
const Loss& XSpaceReader::loss() const { return impl_->loss; }
uint64_t XSpaceReader::position() const { return impl_->position; }
uint64_t XSpaceReader::bytes_read() const { return impl_->wire.position(); }

}  // namespace neurontrace
