// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xspace_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/base/status.h"
#include "lib/trace/limits.h"

// How it works: numbers and texts are taken from a window over the file, which is read again
// wherever a position lies outside it. No message is held as a whole, so memory does not depend on
// the file.
namespace neurontrace {
namespace {

// Large enough that a read is cheap per event, small beside the names of a plane.
constexpr size_t kWireWindowBytes = 64u << 10;

// A value of 0 or more becomes unsigned, as JSON's parser does, so that both sources give one
// shape.
void SetSigned(int64_t value, XSpaceStat& stat) {
  stat.type = value < 0 ? ValueType::kInt : ValueType::kUint;
  stat.bits = static_cast<uint64_t>(value);
}

// Numbers that are not finite become text, which JSON exports can write.
void SetDouble(uint64_t bits, XSpaceStat& stat) {
  const double value = std::bit_cast<double>(bits);
  stat.type = std::isfinite(value) ? ValueType::kDouble : ValueType::kString;
  stat.bits = bits;
  if (!std::isfinite(value)) stat.text = fmt::format("{}", value);
}

// Texts are read one byte beyond their limit, so that a name that is too long is refused when its
// event is written rather than cut silently.
bool ReadMetadata(XSpaceWire& wire, uint64_t end, XSpaceMetadata& entry) {
  while (wire.position() < end) {
    XSpaceWire::Field about;
    if (!wire.Next(end, about)) return false;
    if (about.number == xspace_field::kMetadataName) {
      if (!wire.Text(about, limits::kStringBytesMax + 1, entry.name)) return false;
    } else if (about.number == xspace_field::kMetadataDisplayName) {
      if (!wire.Text(about, limits::kStringBytesMax + 1, entry.display_name)) return false;
    } else if (about.number == xspace_field::kMetadataStats && about.has_length &&
               entry.stats.size() < limits::kAttributesPerEventMax) {
      if (!ReadXSpaceStat(wire, about.end, entry.stats.emplace_back())) return false;
    }
    if (about.has_length) wire.Seek(about.end);
  }
  return true;
}

}  // namespace

// Wire types: 0 varint, 1 fixed 64 bits, 2 length-delimited, 5 fixed 32 bits. The others, groups
// among them, do not occur in xplane.proto and count as damage.
bool XSpaceWire::Next(uint64_t end, Field& field) {
  uint64_t tag = 0;
  if (fields_left_ == 0) return false;
  --fields_left_;
  if (!Varint(end, tag) || tag > UINT32_MAX || tag >> 3 == 0) return false;
  field = {.number = static_cast<uint32_t>(tag >> 3)};
  switch (tag & 7) {
    case 0:
      return Varint(end, field.value);
    case 1:
      return Fixed(end, 8, field.value);
    case 2: {
      uint64_t length = 0;
      // A length that exceeds its message is damage; nothing is allocated for it.
      if (!Varint(end, length) || length > end - position_) return false;
      field.has_length = true;
      field.end = position_ + length;
      return true;
    }
    case 5:
      return Fixed(end, 4, field.value);
    default:
      return false;
  }
}

// A text that is longer than `bytes_max` is cut; the field is passed over as a whole.
bool XSpaceWire::Text(const Field& field, size_t bytes_max, std::string& text) {
  text.clear();
  if (!field.has_length) return false;
  const uint64_t end = std::min<uint64_t>(field.end, position_ + bytes_max);
  while (position_ < end) {
    const std::string_view here = Here();
    if (here.empty()) return false;
    const size_t bytes = std::min<uint64_t>(here.size(), end - position_);
    text.append(here.substr(0, bytes));
    position_ += bytes;
  }
  position_ = field.end;
  return true;
}

bool XSpaceWire::Varint(uint64_t end, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t byte = 0;
    if (!Byte(end, byte)) return false;
    // The tenth byte of a varint has room for one bit.
    if (shift == 63 && byte > 1) return false;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Little endian, as all fixed numbers of the format.
bool XSpaceWire::Fixed(uint64_t end, int bytes, uint64_t& value) {
  value = 0;
  for (int i = 0; i < bytes; ++i) {
    uint8_t byte = 0;
    if (!Byte(end, byte)) return false;
    value |= static_cast<uint64_t>(byte) << (8 * i);
  }
  return true;
}

bool XSpaceWire::Byte(uint64_t end, uint8_t& byte) {
  if (position_ >= end) return false;
  const std::string_view here = Here();
  if (here.empty()) return false;
  byte = static_cast<uint8_t>(here.front());
  ++position_;
  return true;
}

// The bytes of the window from position() on; empty at the end of the file and after an error.
std::string_view XSpaceWire::Here() {
  if (position_ < window_begin_ || position_ >= window_begin_ + window_.size()) Fill();
  if (window_.empty()) return {};
  return std::string_view(window_).substr(position_ - window_begin_);
}

// Reads a new window at position_. An error of the input is kept in status_, so that callers that
// only see "no field" can tell it from damage.
void XSpaceWire::Fill() {
  window_.clear();
  if (!status_.ok() || position_ >= input_.size) return;
  window_.resize(std::min<uint64_t>(kWireWindowBytes, input_.size - position_));
  const auto bytes = input_.read(position_, window_.data(), window_.size());
  if (!bytes.ok()) {
    status_ = bytes.status();
  } else if (*bytes == 0) {
    status_ = DataLoss("the file became shorter after it was opened");
  }
  window_begin_ = position_;
  window_.resize(bytes.ok() ? std::min(*bytes, window_.size()) : 0);
}

void XSpaceWire::TryAgain(uint64_t position) {
  status_ = absl::OkStatus();
  window_.clear();
  position_ = position;
}

// The value is a oneof: if several are there, the last one counts.
bool ReadXSpaceStat(XSpaceWire& wire, uint64_t end, XSpaceStat& stat) {
  stat = {};
  while (wire.position() < end) {
    XSpaceWire::Field about;
    if (!wire.Next(end, about)) return false;
    // Texts and bytes have a length, and all other values are numbers; unknown fields may be
    // either.
    const bool is_text =
        about.number == xspace_field::kStatString || about.number == xspace_field::kStatBytes;
    if (about.number <= xspace_field::kStatReference && about.has_length != is_text) return false;
    switch (about.number) {
      case xspace_field::kStatMetadataId:
        stat.metadata_id = static_cast<int64_t>(about.value);
        break;
      case xspace_field::kStatDouble:
        SetDouble(about.value, stat);
        break;
      case xspace_field::kStatUint64:
        stat.type = ValueType::kUint;
        stat.bits = about.value;
        break;
      case xspace_field::kStatInt64:
        SetSigned(static_cast<int64_t>(about.value), stat);
        break;
      case xspace_field::kStatString:
        if (!wire.Text(about, limits::kStringBytesMax + 1, stat.text)) return false;
        stat.type = ValueType::kString;
        break;
      case xspace_field::kStatBytes:
        stat.type = ValueType::kString;
        // Bytes have no text form; only their size is kept.
        stat.text = fmt::format("{} bytes, not stored", about.end - wire.position());
        break;
      case xspace_field::kStatReference:
        stat.type = ValueType::kString;
        stat.bits = about.value;
        stat.is_reference = true;
        break;
      default:
        break;
    }
    if (about.has_length) wire.Seek(about.end);
  }
  return true;
}

// Maps are repeated messages with a key and a value; a missing key is 0.
bool ReadXSpaceMapEntry(XSpaceWire& wire, uint64_t end, XSpaceMetadata& entry) {
  entry = {};
  while (wire.position() < end) {
    XSpaceWire::Field about;
    if (!wire.Next(end, about)) return false;
    if (about.number == xspace_field::kEntryKey) {
      if (about.has_length) return false;
      entry.id = static_cast<int64_t>(about.value);
    } else if (about.number == xspace_field::kEntryValue) {
      if (!about.has_length || !ReadMetadata(wire, about.end, entry)) return false;
    }
    if (about.has_length) wire.Seek(about.end);
  }
  return true;
}

// Other fields, events among them, are not looked at.
bool ReadXSpaceLineField(XSpaceWire& wire, const XSpaceWire::Field& about, XSpaceLine& line) {
  switch (about.number) {
    case xspace_field::kLineId:
      line.id = static_cast<int64_t>(about.value);
      return !about.has_length;
    case xspace_field::kLineTimestampNs:
      line.timestamp_ns = static_cast<int64_t>(about.value);
      return !about.has_length;
    case xspace_field::kLineName:
      return wire.Text(about, limits::kStringBytesMax, line.name);
    case xspace_field::kLineDisplayName:
      return wire.Text(about, limits::kStringBytesMax, line.display_name);
    default:
      return true;
  }
}

}  // namespace neurontrace
