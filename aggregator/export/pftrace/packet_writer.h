// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/export/output_files.h"
#include "aggregator/export/pftrace/interner.h"
#include "aggregator/export/pftrace/packet_compressor.h"
#include "aggregator/export/pftrace/perfetto_fields.h"
#include "aggregator/export/pftrace/wire_bytes.h"

namespace neurontrace {

// Writes the packets of one sequence in the order of time: its header, interned texts, and events
// with their time as the difference from the preceding packet. The header is repeated when the
// interned texts have become too many, or after kBytesPerGeneration, so that a reader who lost the
// beginning can continue there.
//
// What is known only after its time goes to a second sequence, the side sequence, whose events come
// in any order with absolute times. Used by one thread at a time; the sink and the interner must
// outlive it.
class PacketWriter {
 public:
  static constexpr uint32_t kSequenceId = 1;
  static constexpr uint32_t kSideSequenceId = 2;
  // A generation is what follows one header.
  static constexpr size_t kBytesPerGeneration = size_t{64} << 20;

  // `compresses` puts packets into packets of compressed packets.
  PacketWriter(ByteSink& sink, Interner& interner, bool compresses);

  // Writes the header of the sequence, whose time starts here.
  void Begin(uint64_t begin_ns);
  // Restarts the sequence if it is time to. Must be called before anything of an event is interned.
  void StartOverIfDue() {
    if (interner_.is_full() || side_interner_.is_full() ||
        bytes_in_generation() >= kBytesPerGeneration) [[unlikely]]
      StartOver();
  }

  // Writes one event; `fields` are those of TrackEvent. A `timestamp_ns` before that of the
  // preceding packet is replaced by it, as differences cannot be negative.
  void Event(uint64_t timestamp_ns, std::string_view fields);
  // Writes an event of the side sequence, whose texts side_interner() interns. Any time is allowed.
  void SideEvent(uint64_t timestamp_ns, std::string_view fields);
  Interner& side_interner() { return side_interner_; }
  // Write a packet of the main sequence with a TrackDescriptor or the TraceAttributes; `fields` is
  // the serialised message.
  void TrackDescriptor(std::string_view fields);
  void TraceAttributes(std::string_view fields);

  // Pass what has gathered to the sink: once that is worth it, or all of it. Fail with errors of
  // the sink.
  absl::Status FlushIfLarge() { return buffer_at_ >= kFlushBytes ? Flush() : absl::OkStatus(); }
  absl::Status Flush();

  // Return the bytes before compression, and those of them that are still buffered.
  uint64_t bytes_written() const { return bytes_flushed_ + buffer_at_; }
  // Of these, those that have not been handed on.
  uint64_t bytes_buffered() const { return buffer_at_; }
  // Returns the time of the packet written last in the main sequence.
  uint64_t now_ns() const { return now_ns_; }

 private:
  static constexpr size_t kFlushBytes = 256u << 10;

  // Begins a new generation: both interners are reset, and the header is written again.
  void StartOver();
  // Write the packet that begins a sequence or a generation of it.
  void Header(bool is_first);
  void SideHeader();
  // Writes what is pending in the interner as a packet of the sequence.
  void WriteInterned(uint32_t sequence_id, Interner& interner);
  void TrackEvent(uint64_t time, std::string_view sequence, std::string_view fields);
  // Adds a serialised TracePacket to the buffer, with its tag and length.
  void Append(std::string_view packet);
  // Writes a packet of the sequence with `data`, serialised, as its one field.
  void Packet(uint32_t field, std::string_view data, bool needs_state);
  // Returns where `bytes` can be written; Wrote then takes the end.
  char* Room(size_t bytes) {
    if (buffer_.size() - buffer_at_ < bytes) [[unlikely]]
      Grow(bytes);
    return buffer_.data() + buffer_at_;
  }
  void Grow(size_t bytes);
  void Wrote(const char* end) { buffer_at_ = static_cast<size_t>(end - buffer_.data()); }
  uint64_t bytes_in_generation() const { return bytes_written() - generation_begin_; }

  ByteSink& sink_;
  Interner& interner_;
  Interner side_interner_;
  // Whether the header of the side sequence is written. Cleared with each generation.
  bool has_side_ = false;
  std::optional<PacketCompressor> compressor_;
  // Its size is the capacity; buffer_at_ is the end of the bytes in it.
  std::vector<char> buffer_;
  size_t buffer_at_ = 0;
  uint64_t bytes_flushed_ = 0;
  // bytes_written() when the generation began.
  uint64_t generation_begin_ = 0;
  // The time of the preceding packet.
  uint64_t now_ns_ = 0;
};

}  // namespace neurontrace
