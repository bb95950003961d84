// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/packet_writer.h"

#include <algorithm>
#include <protozero/pbf_writer.hpp>

namespace neurontrace {
namespace {

namespace tag = perfetto::tag;
namespace packet = perfetto::packet;
namespace clocks = perfetto::clocks;

// The initial capacity, which one flush of kFlushBytes and an event hardly ever exceed.
constexpr size_t kBufferBytes = size_t{1} << 20;
// `50 01 68 02`: the sequence's id, and the flag that the packet needs the sequence's earlier
// state.
constexpr char kSequence[] = {tag::kSequenceId, PacketWriter::kSequenceId, tag::kSequenceFlags,
                              packet::kFlagNeedsState};
constexpr char kSideSequence[] = {tag::kSequenceId, PacketWriter::kSideSequenceId,
                                  tag::kSequenceFlags, packet::kFlagNeedsState};
static_assert(PacketWriter::kSequenceId < 0x80 && PacketWriter::kSideSequenceId < 0x80);

}  // namespace

PacketWriter::PacketWriter(ByteSink& sink, Interner& interner, bool compresses)
    : sink_(sink), interner_(interner), buffer_(kBufferBytes) {
  if (compresses) compressor_.emplace();
}

void PacketWriter::Grow(size_t bytes) {
  buffer_.resize(std::max(2 * buffer_.size(), buffer_at_ + bytes));
}

// Bytes count as flushed even after an error, which ends the export.
absl::Status PacketWriter::Flush() {
  const std::string_view packets(buffer_.data(), buffer_at_);
  const absl::Status status =
      sink_.Write(compressor_ && !packets.empty() ? compressor_->Compress(packets) : packets);
  bytes_flushed_ += buffer_at_;
  buffer_at_ = 0;
  return status;
}

void PacketWriter::Begin(uint64_t begin_ns) {
  now_ns_ = begin_ns;
  Header(true);
}

// Descriptors of tracks are not repeated: their uuids are global in the file.
void PacketWriter::StartOver() {
  interner_.Reset();
  side_interner_.Reset();
  has_side_ = false;
  // The side sequence restarts with its next event.
  generation_begin_ = bytes_written();
  Header(false);
}

void PacketWriter::Append(std::string_view packet) {
  char* out = Room(packet.size() + 1 + wire_bytes::kVarintMax);
  out = wire_bytes::Byte(out, tag::kPacket);
  out = wire_bytes::Varint(out, packet.size());
  Wrote(wire_bytes::Bytes(out, packet));
}

// Times of the side sequence are by the trace's own clock, because nothing relates them to those of
// preceding packets.
void PacketWriter::SideHeader() {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint32(packet::kSequenceId, kSideSequenceId);
  writer.add_uint32(packet::kSequenceFlags, packet::kFlagStateCleared);
  {
    protozero::pbf_writer defaults(writer, packet::kDefaults);
    defaults.add_uint32(packet::kDefaultsTimestampClockId, clocks::kRealtime);
  }
  Append(body);
  has_side_ = true;
}

void PacketWriter::SideEvent(uint64_t timestamp_ns, std::string_view fields) {
  if (!has_side_) SideHeader();
  if (side_interner_.has_pending()) [[unlikely]]
    WriteInterned(kSideSequenceId, side_interner_);
  TrackEvent(timestamp_ns, {kSideSequence, sizeof kSideSequence}, fields);
}

// The flag "state cleared" makes readers forget the interned texts and accept what follows. The
// incremental clock lets events have differences as times; the snapshot ties it to CLOCK_REALTIME,
// which the trace uses as its time.
void PacketWriter::Header(bool is_first) {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint32(packet::kSequenceId, kSequenceId);
  writer.add_uint32(packet::kSequenceFlags, packet::kFlagStateCleared);
  if (is_first) writer.add_bool(packet::kFirstOnSequence, true);
  {
    protozero::pbf_writer defaults(writer, packet::kDefaults);
    defaults.add_uint32(packet::kDefaultsTimestampClockId, clocks::kIncremental);
  }
  {
    protozero::pbf_writer snapshot(writer, packet::kClockSnapshot);
    {
      protozero::pbf_writer clock(snapshot, clocks::kClock);
      clock.add_uint32(clocks::kClockId, clocks::kIncremental);
      clock.add_uint64(clocks::kTimestamp, now_ns_);
      clock.add_bool(clocks::kIsIncremental, true);
    }
    {
      protozero::pbf_writer clock(snapshot, clocks::kClock);
      clock.add_uint32(clocks::kClockId, clocks::kRealtime);
      clock.add_uint64(clocks::kTimestamp, now_ns_);
    }
    if (is_first) {
      // No time here is of it. But Perfetto (August 2026) takes it for a file's clock and counts an
      // error where nothing relates it to the trace's.
      protozero::pbf_writer clock(snapshot, clocks::kClock);
      clock.add_uint32(clocks::kClockId, clocks::kBoottime);
      clock.add_uint64(clocks::kTimestamp, now_ns_);
    }
    snapshot.add_enum(clocks::kPrimaryTraceClock, clocks::kRealtime);
  }
  Append(body);
}

// With `needs_state` the packet has a time and is skipped by readers that missed the header.
void PacketWriter::Packet(uint32_t field, std::string_view data, bool needs_state) {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint32(packet::kSequenceId, kSequenceId);
  if (needs_state) {
    writer.add_uint64(packet::kTimestamp, 0);  // now, by the sequence's clock
    writer.add_uint32(packet::kSequenceFlags, packet::kFlagNeedsState);
  }
  writer.add_message(field, data.data(), data.size());
  Append(body);
}

void PacketWriter::TrackDescriptor(std::string_view fields) {
  Packet(packet::kTrackDescriptor, fields, true);
}

void PacketWriter::TraceAttributes(std::string_view fields) {
  Packet(packet::kTraceAttributes, fields, false);
}

void PacketWriter::WriteInterned(uint32_t sequence_id, Interner& interner) {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint32(packet::kSequenceId, sequence_id);
  writer.add_uint32(packet::kSequenceFlags, packet::kFlagNeedsState);
  writer.add_message(packet::kInternedData, interner.pending().data(), interner.pending().size());
  interner.ClearPending();
  Append(body);
}

// Texts must precede the event in the file.
void PacketWriter::Event(uint64_t timestamp_ns, std::string_view fields) {
  if (interner_.has_pending()) [[unlikely]]
    WriteInterned(kSequenceId, interner_);
  // Differences make short varints.
  const uint64_t delta_ns = timestamp_ns > now_ns_ ? timestamp_ns - now_ns_ : 0;
  now_ns_ += delta_ns;
  TrackEvent(delta_ns, {kSequence, sizeof kSequence}, fields);
}

// `time` by the clock of the sequence, which `sequence` names.
void PacketWriter::TrackEvent(uint64_t time, std::string_view sequence, std::string_view fields) {
  // All lengths are computed beforehand, so that the packet is written once and from front to back.
  const size_t event_bytes = fields.size();
  const size_t packet_bytes = 1 + wire_bytes::VarintBytes(time) + sequence.size() + 1 +
                              wire_bytes::VarintBytes(event_bytes) + event_bytes;
  char* out = Room(packet_bytes + 1 + wire_bytes::kVarintMax);
  out = wire_bytes::Byte(out, tag::kPacket);
  out = wire_bytes::Varint(out, packet_bytes);
  out = wire_bytes::Byte(out, tag::kTimestamp);
  out = wire_bytes::Varint(out, time);
  out = wire_bytes::Bytes(out, sequence);
  out = wire_bytes::Byte(out, tag::kTrackEvent);
  out = wire_bytes::Varint(out, event_bytes);
  Wrote(wire_bytes::Bytes(out, fields));
}

}  // namespace neurontrace
