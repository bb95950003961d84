// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/event.h"

namespace neurontrace {

// The bytes of an XSpace file (NAME.xplane.pb), as openxla/xla defines them in
// xla/tsl/profiler/protobuf/xplane.proto.
struct XSpaceInput {
  // Reads up to `size` bytes from `offset` on, fewer only at the end of the file.
  std::function<absl::StatusOr<size_t>(uint64_t offset, char* out, size_t size)> read;
  uint64_t size = 0;
};

// Field numbers of xplane.proto, by message.
namespace xspace_field {
inline constexpr uint32_t kSpacePlanes = 1;
inline constexpr uint32_t kPlaneName = 2, kPlaneLines = 3, kPlaneEventMetadata = 4;
inline constexpr uint32_t kPlaneStatMetadata = 5, kPlaneStats = 6;
inline constexpr uint32_t kEntryKey = 1, kEntryValue = 2;  // of both maps of metadata
inline constexpr uint32_t kMetadataName = 2, kMetadataDisplayName = 4, kMetadataStats = 5;
inline constexpr uint32_t kLineId = 1, kLineName = 2, kLineTimestampNs = 3, kLineEvents = 4;
inline constexpr uint32_t kLineDisplayName = 11;
inline constexpr uint32_t kEventMetadataId = 1, kEventOffsetPs = 2, kEventDurationPs = 3;
inline constexpr uint32_t kEventStats = 4, kEventOccurrences = 5;
inline constexpr uint32_t kStatMetadataId = 1, kStatDouble = 2, kStatUint64 = 3, kStatInt64 = 4;
inline constexpr uint32_t kStatString = 5, kStatBytes = 6, kStatReference = 7;
}  // namespace xspace_field

// Reads the wire format of protocol buffers field by field (protobuf.dev, "Encoding"), without
// holding a message in memory. Every read has an end that it does not cross, so that damage in one
// message is noticed in that message. Used by one thread at a time. Positions are bytes from the
// beginning of the file.
class XSpaceWire {
 public:
  struct Field {
    uint32_t number = 0;
    bool has_length = false;  // its content lies from position() to `end`
    // Of a varint or a fixed number; raw bits for a double.
    uint64_t value = 0;  // without
    uint64_t end = 0;
  };

  explicit XSpaceWire(XSpaceInput input) : input_(std::move(input)) {}

  uint64_t size() const { return input_.size; }
  uint64_t position() const { return position_; }
  void Seek(uint64_t position) { position_ = position; }
  // Sets how many fields may be read before Next returns false, so that a call is a bounded piece
  // of work whatever a message holds.
  void Allow(uint32_t fields) { fields_left_ = fields; }
  // Not OK if the file could not be read, which is not damage of its content.
  const absl::Status& status() const { return status_; }
  // Clears the error and continues at `position`.
  void TryAgain(uint64_t position);

  // Reads the field at position(); returns false if there is none before `end`, or it is damaged.
  bool Next(uint64_t end, Field& field);
  // Reads the content of a field, at most `bytes_max` of it, and moves behind the field.
  bool Text(const Field& field, size_t bytes_max, std::string& text);

 private:
  // Read one number at position(); return false if it crosses `end` or the file's end.
  bool Varint(uint64_t end, uint64_t& value);
  bool Fixed(uint64_t end, int bytes, uint64_t& value);
  bool Byte(uint64_t end, uint8_t& byte);
  // Returns at least one byte from position() on, or nothing.
  std::string_view Here();
  void Fill();

  XSpaceInput input_;
  absl::Status status_;
  uint64_t position_ = 0;
  // Enough for a first look at a file; see Allow.
  uint32_t fields_left_ = 2;
  std::string window_;
  uint64_t window_begin_ = 0;
};

// The value of one stat. Its name is in the table of its plane. Filled by ReadXSpaceStat; strings
// longer than limits::kStringBytesMax are cut one byte beyond it.
struct XSpaceStat {
  int64_t metadata_id = 0;
  ValueType type = ValueType::kNull;
  uint64_t bits = 0;
  std::string text;
  bool is_reference = false;  // `bits` is the id of the name that is its text
};
// An entry of one of a plane's maps.
struct XSpaceMetadata {
  int64_t id = 0;
  std::string name;
  std::string display_name;
  std::vector<XSpaceStat> stats;
};

// The fields of a line, other than its events.
struct XSpaceLine {
  int64_t id = 0;
  std::string name;
  std::string display_name;
  int64_t timestamp_ns = 0;
};

// Read one message that ends at `end`; return false if it is damaged, which includes known fields
// of another wire type than their own.
bool ReadXSpaceStat(XSpaceWire& wire, uint64_t end, XSpaceStat& stat);
bool ReadXSpaceMapEntry(XSpaceWire& wire, uint64_t end, XSpaceMetadata& entry);
// Takes one field of a line; returns false if it is damaged. The caller skips the content of fields
// that are unknown here.
bool ReadXSpaceLineField(XSpaceWire& wire, const XSpaceWire::Field& field, XSpaceLine& line);

}  // namespace neurontrace
