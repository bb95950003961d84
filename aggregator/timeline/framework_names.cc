// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/framework_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <vector>

#include "lib/base/status.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/framework_mapping.h"

namespace neurontrace {
namespace {

// Entries are small; this only keeps a large stream's index from being in memory at once.
constexpr size_t kEntriesPerRead = 64;

// Returns whether one of the chunk's shapes is that of metadata events.
bool HasMetadata(const DecodedChunk& chunk) {
  return std::any_of(chunk.shapes().begin(), chunk.shapes().end(),
                     [](const Shape& shape) { return shape.phase == Phase::kMetadata; });
}

// Returns attributes of one metadata event by name, as text. Metadata events are few, so that a
// search by name for each costs nothing that matters.
class MetadataEvent {
 public:
  MetadataEvent(const DecodedChunk& chunk, size_t event)
      : chunk_(chunk), event_(event), shape_(chunk.shapes()[chunk.shape_of()[event]]) {}

  std::string Text(KeyScope scope, std::string_view name) const {
    for (uint32_t i = 0; i < shape_.keys.size(); ++i) {
      const ShapeKey& key = shape_.keys[i];
      if (key.scope != scope || key.name != name) continue;
      const AttributeValue value = chunk_.value(event_, i);
      if (key.type == ValueType::kString || key.type == ValueType::kJson) {
        return std::string(value.text);
      }
      return AttributeText(key, value.bits, {});
    }
    return {};
  }
  std::optional<uint64_t> SequenceId() const {
    if ((shape_.present & FieldBit(Field::kNrtaSeqId)) == 0) return std::nullopt;
    return chunk_.nrta_seq_id()[event_];
  }
  // Chunks have the thread as a number if it is one, and as an attribute if it is a text.
  std::string ThreadId() const {
    if ((shape_.present & FieldBit(Field::kThreadId)) == 0) return Text(KeyScope::kTop, "tid");
    return fmt::format("{}", chunk_.thread_id()[event_]);
  }

 private:
  const DecodedChunk& chunk_;
  const size_t event_;
  const Shape& shape_;
};

// What a row costs in memory beside its texts, roughly: two nodes of a map.
constexpr size_t kRowBytes = 160;

// Keeps a row's text if there is room. A later text replaces an earlier one, as in the viewers of
// this format. The replaced text's bytes return to `room`, so that a file that renames a row again
// and again cannot use it up.
template <typename Rows, typename Text>
void PutName(Rows& rows, const typename Rows::key_type& key, size_t key_bytes, std::string name,
             Text text_of, size_t& room) {
  const auto known = rows.find(key);
  const bool is_new = known == rows.end();
  const size_t freed = is_new ? 0 : text_of(known->second).size();
  const size_t bytes = name.size() + (is_new ? kRowBytes + key_bytes : 0);
  if (bytes > room + freed) return;
  room = room + freed - bytes;
  text_of(is_new ? rows[key] : known->second) = std::move(name);
}

using Process = FrameworkNames::Process;

// Takes the name that a metadata event gives to a process or a thread. Other metadata is ignored.
void TakeName(const MetadataEvent& event, FrameworkNames& names, size_t& room) {
  const std::string what = event.Text(KeyScope::kTop, "name");
  const std::string pid = event.Text(KeyScope::kTop, "pid");
  // The names of the Trace Event Format's metadata events; the others do not name rows.
  if (what == "process_name") {
    PutName(
        names.processes, pid, pid.size(), event.Text(KeyScope::kData, "name"),
        [](Process& process) -> std::string& { return process.name; }, room);
  } else if (what == "process_labels") {
    PutName(
        names.processes, pid, pid.size(), event.Text(KeyScope::kData, "labels"),
        [](Process& process) -> std::string& { return process.labels; }, room);
  } else if (what == "thread_name") {
    const std::string tid = event.ThreadId();
    PutName(
        names.threads, {pid, tid}, pid.size() + tid.size(), event.Text(KeyScope::kData, "name"),
        [](std::string& name) -> std::string& { return name; }, room);
  }
}

// Takes all names of a chunk, within the limit of rows.
void AddNames(const DecodedChunk& chunk, FrameworkNames& names, size_t& room) {
  for (size_t i = 0; i < chunk.size(); ++i) {
    if (chunk.shapes()[chunk.shape_of()[i]].phase != Phase::kMetadata) continue;
    if (names.processes.size() + names.threads.size() >= FrameworkNames::kRowsMax) return;
    TakeName(MetadataEvent(chunk, i), names, room);
  }
}

// Parses a list of integers and nulls by hand, as it may be long and has no nesting. Anything that
// is not a whole number from 0 on names no operation and is skipped.
void AddMapped(uint64_t nrta_seq_id, std::string_view list, FrameworkNames& names, size_t& room) {
  while (!list.empty()) {
    const size_t begin = list.find_first_not_of("[,] ");
    if (begin == std::string_view::npos) return;
    list.remove_prefix(begin);
    const std::string_view item = list.substr(0, list.find_first_of(",] "));
    list.remove_prefix(item.size());
    uint64_t number = 0;
    const auto end = std::from_chars(item.data(), item.data() + item.size(), number);
    if (end.ec != std::errc{} || end.ptr != item.data() + item.size()) continue;
    if (room == 0) {
      ++names.mapped_beyond;
      continue;
    }
    --room;
    names.mapped.push_back({nrta_seq_id, number});
  }
}

// Takes the operations of each entry that names a sequence of the runtime.
void TakeMapping(const DecodedChunk& chunk, FrameworkNames& names, size_t& room) {
  for (size_t i = 0; i < chunk.size(); ++i) {
    const Shape& shape = chunk.shapes()[chunk.shape_of()[i]];
    if (shape.phase != Phase::kMetadata || shape.event_type != kFrameworkMappingEventType) continue;
    const MetadataEvent event(chunk, i);
    const auto id = event.SequenceId();
    if (id) AddMapped(*id, event.Text(KeyScope::kData, kMappingSequenceKey), names, room);
  }
}

}  // namespace

bool IsFrameworkMapping(const StreamIdentity& stream) {
  return stream.kind == StreamKind::kFramework && IsFrameworkMappingName(stream.name);
}

absl::StatusOr<FrameworkNames> ReadFrameworkNames(ChunkSource& source,
                                                  const StreamDescription& stream,
                                                  FrameworkRoom& room) {
  const bool is_mapping = IsFrameworkMapping(stream.identity);
  FrameworkNames names;
  IndexPosition from;
  std::vector<ChunkEntry> entries;
  std::string columns;
  DecodedChunk chunk;
  do {
    RETURN_IF_ERROR(source.ReadIndex(stream.number, from, kEntriesPerRead, entries));
    for (const ChunkEntry& entry : entries) {
      if (!source.ReadColumns(stream.number, entry.sequence, columns).ok()) continue;
      // The dictionary alone shows whether the chunk has metadata: most chunks have none, and their
      // attributes need not be decoded.
      if (!chunk.Decode(columns, DecodedChunk::Attributes::kSkip).ok()) continue;
      if (!HasMetadata(chunk) || !chunk.Decode(columns).ok()) continue;
      if (is_mapping) {
        TakeMapping(chunk, names, room.mapped);
      } else {
        AddNames(chunk, names, room.name_bytes);
      }
    }
    if (!entries.empty()) {
      from = {entries.back().last_timestamp_ns, entries.back().sequence + 1};
    }
  } while (entries.size() == kEntriesPerRead);
  return names;
}

std::string AttributeText(const ShapeKey& key, uint64_t value,
                          const std::vector<std::string_view>& strings) {
  switch (key.type) {
    case ValueType::kBool:
      return value != 0 ? "true" : "false";
    case ValueType::kUint:
      return fmt::format("{}", value);
    case ValueType::kInt:
      return fmt::format("{}", static_cast<int64_t>(value));
    case ValueType::kDouble:
      return fmt::format("{}", std::bit_cast<double>(value));
    case ValueType::kString:
    case ValueType::kJson:
      return std::string(strings[value]);
    case ValueType::kNull:
      break;
  }
  return "null";
}

const uint64_t* FindAttribute(const TimelineRecord& record, KeyScope scope, std::string_view name,
                              const ShapeKey** key) {
  const auto& keys = record.start().keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].scope != scope || keys[i].name != name) continue;
    if (key != nullptr) *key = &keys[i];
    return record.values + i;
  }
  return nullptr;
}

std::string FrameworkProcessId(const TimelineRecord& record) {
  const ShapeKey* key = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kTop, "pid", &key);
  return value == nullptr ? "" : AttributeText(*key, *value, record.names->strings);
}

std::string FrameworkThreadId(const TimelineRecord& record) {
  if ((record.start().present & FieldBit(Field::kThreadId)) != 0) {
    return fmt::format("{}", record.thread_id);
  }
  const ShapeKey* key = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kTop, "tid", &key);
  return value == nullptr ? "" : AttributeText(*key, *value, record.names->strings);
}

}  // namespace neurontrace
