// SPDX-License-Identifier: Apache-2.0
#include "validate/trace_validator.h"

#include <fmt/format.h>

#include <optional>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>

#include "base/clean_text.h"
#include "base/status.h"
#include "validate/clock_table.h"
#include "validate/event_check.h"
#include "validate/limits.h"
#include "validate/packet_stream.h"
#include "validate/perfetto_numbers.h"
#include "validate/sequence_table.h"
#include "validate/track_list.h"

namespace neurontrace {
namespace {

constexpr size_t kAttributesMax = 1'024;
constexpr std::string_view kOwnAttribute = "io.neurontrace.version";

// The fields of a packet that are looked at.
struct TracePacket {
  std::optional<uint64_t> timestamp;
  uint64_t clock = 0;  // 0: the sequence's
  uint32_t sequence = 0;
  uint64_t flags = 0;
  uint64_t dropped = 0;
  uint64_t machine = 0;
  bool has_extension_descriptor = false;
  bool has_remote_clock_sync = false;
  bool has_thread_descriptor = false;
  bool is_marker = false;  // that packets can be found by: it is nobody's
  std::optional<std::string_view> attributes, clock_snapshot, defaults, descriptor, event, interned;
};

TracePacket ReadPacket(std::string_view bytes) {
  TracePacket out;
  for (protozero::pbf_reader fields(bytes.data(), bytes.size()); fields.next();) {
    switch (fields.tag_and_type()) {
      case perfetto_read::packet::kTimestamp:
        out.timestamp = fields.get_uint64();
        break;
      case perfetto_read::packet::kTimestampClockId:
        out.clock = fields.get_uint64();
        break;
      case perfetto_read::packet::kSequenceId:
        out.sequence = fields.get_uint32();
        break;
      case perfetto_read::packet::kSequenceFlags:
        out.flags |= fields.get_uint64();
        break;
      case perfetto_read::packet::kStateCleared:
        if (fields.get_uint64() != 0) out.flags |= perfetto_read::packet::kFlagStateCleared;
        break;
      case perfetto_read::packet::kPreviousPacketDropped:
        out.dropped = fields.get_uint64();
        break;
      case perfetto_read::packet::kMachineId:
        out.machine = fields.get_uint64();
        break;
      case perfetto_read::packet::kTraceAttributes:
        out.attributes = perfetto_read::TextOf(fields.get_view());
        break;
      case perfetto_read::packet::kClockSnapshot:
        out.clock_snapshot = perfetto_read::TextOf(fields.get_view());
        break;
      case perfetto_read::packet::kDefaults:
        out.defaults = perfetto_read::TextOf(fields.get_view());
        break;
      case perfetto_read::packet::kTrackDescriptor:
        out.descriptor = perfetto_read::TextOf(fields.get_view());
        break;
      case perfetto_read::packet::kTrackEvent:
        out.event = perfetto_read::TextOf(fields.get_view());
        break;
      case perfetto_read::packet::kInternedData:
        out.interned = perfetto_read::TextOf(fields.get_view());
        break;
      case perfetto_read::packet::kRemoteClockSync:
        out.has_remote_clock_sync = true;
        fields.skip();
        break;
      case perfetto_read::packet::kThreadDescriptor:
        out.has_thread_descriptor = true;
        fields.skip();
        break;
      case perfetto_read::packet::kSynchronizationMarker:
        out.is_marker = true;
        fields.skip();
        break;
      case perfetto_read::packet::kExtensionDescriptor:
        out.has_extension_descriptor = true;
        fields.skip();
        break;
      default:
        fields.skip();
    }
  }
  return out;
}

class TraceValidator {
 public:
  explicit TraceValidator(ReadBytes read)
      : packets_(std::move(read), report_.findings),
        sequences_(report_.findings, report_.summary),
        clocks_(report_.findings),
        tracks_(report_.findings),
        events_(report_.findings, report_.summary, tracks_) {}

  absl::StatusOr<TraceReport> Run() {
    while (true) {
      std::string_view packet;
      ASSIGN_OR_RETURN(const bool has_packet, packets_.Next(packet));
      if (!has_packet) break;
      try {
        TakePacket(ReadPacket(packet));
      } catch (const protozero::exception& error) {  // protozero has no other way of saying it
        log().Add(TraceCheck::kPacket, "The packet does not parse: {}.", error.what());
      }
    }
    Finish();
    return std::move(report_);
  }

 private:
  TraceFindingLog& log() { return report_.findings; }

  void TakePacket(const TracePacket& packet) {
    if (packet.dropped != 0) {
      ++report_.summary.packet_losses;
      log().Add(TraceCheck::kPacketLoss, "Packets of sequence {} were lost before this one.",
                packet.sequence);
    }
    const ClockTable::Owner owner = {.sequence = packet.sequence, .machine = MachineOf(packet)};
    if (packet.attributes) TakeAttributes(*packet.attributes);
    if (packet.has_extension_descriptor) events_.AllowExtensions();
    TraceSequence* const sequence = SequenceOf(packet);
    if (sequence != nullptr && !TakeState(packet, *sequence)) return;
    if (packet.clock_snapshot) {
      clocks_.TakeSnapshot(*packet.clock_snapshot, owner);
      return;  // as Perfetto does: what else the packet has is not looked at
    }
    if (packet.has_remote_clock_sync) return clocks_.TakeRemoteSync(owner.machine);
    std::optional<uint64_t> time_ns;
    if (packet.timestamp) {
      const uint64_t own = sequence == nullptr ? 0 : sequence->default_clock;
      time_ns =
          clocks_.ToTraceTime(*packet.timestamp, packet.clock != 0 ? packet.clock : own, owner);
      if (!time_ns) return;
    }
    if (packet.descriptor) tracks_.TakeDescriptor(*packet.descriptor, owner.machine);
    if (sequence == nullptr) return;
    if (packet.has_thread_descriptor) sequence->has_thread = true;
    if (packet.event) events_.Take(*packet.event, *sequence, time_ns);
  }

  // 0: the host. Where nothing stands before it that is the host's, the first machine that the file
  // names is taken for it.
  uint64_t MachineOf(const TracePacket& packet) {
    if (packet.machine == 0) {
      if (!packet.is_marker && !host_) host_ = 0;
      return 0;
    }
    if (!host_) host_ = packet.machine;
    return packet.machine == *host_ ? 0 : packet.machine;
  }

  // nullptr: there is none, which is a finding where the packet needs one.
  TraceSequence* SequenceOf(const TracePacket& packet) {
    if (packet.sequence != 0) return sequences_.Of(packet.sequence);
    const std::string_view what = packet.event          ? "an event"
                                  : packet.interned     ? "interned data"
                                  : packet.defaults     ? "defaults"
                                  : packet.flags != 0   ? "sequence flags"
                                  : packet.dropped != 0 ? "a loss of packets"
                                                        : "";
    if (!what.empty()) {
      log().Add(TraceCheck::kSequenceId, "The packet has {}, and is of no sequence.", what);
    }
    return nullptr;
  }

  // False: Perfetto passes the packet over.
  bool TakeState(const TracePacket& packet, TraceSequence& sequence) {
    if ((packet.flags & perfetto_read::packet::kFlagStateCleared) != 0) {
      sequences_.Clear(sequence);
    } else if (packet.dropped != 0) {
      sequence.has_state = false;  // what was lost may have told something
    }
    if (packet.defaults) sequences_.TakeDefaults(*packet.defaults, sequence);
    const bool needs_state = NeedsState(packet) && !packet.clock_snapshot;
    if (sequence.has_state) {
      if (packet.interned) sequences_.TakeInterned(*packet.interned, sequence);
    } else if (packet.interned || needs_state) {
      log().Add(TraceCheck::kSequenceState,
                "The packet {} a state that its sequence, {}, does not have: it was not cleared{}.",
                packet.interned ? "adds to" : "needs", packet.sequence,
                sequence.was_cleared ? " since packets were lost" : "");
    }
    return sequence.has_state || !needs_state;
  }
  static bool NeedsState(const TracePacket& packet) {
    return (packet.flags & perfetto_read::packet::kFlagNeedsState) != 0;
  }

  void TakeAttributes(std::string_view bytes) {
    for (protozero::pbf_reader fields(bytes.data(), bytes.size()); fields.next();) {
      if (fields.tag_and_type() != perfetto_read::attributes::kAttribute) {
        fields.skip();
        continue;
      }
      std::string key;
      std::string value;
      for (protozero::pbf_reader about(fields.get_view()); about.next();) {
        switch (about.tag_and_type()) {
          case perfetto_read::attributes::kKey:
            key = Beginning(perfetto_read::TextOf(about.get_view()));
            break;
          case perfetto_read::attributes::kLongValue:
            value = fmt::format("{}", about.get_int64());
            break;
          case perfetto_read::attributes::kStringValue:
            value = Beginning(perfetto_read::TextOf(about.get_view()));
            break;
          default:
            about.skip();
        }
      }
      if (key == kOwnAttribute) events_.TrustArguments();
      if (report_.attributes.size() < kAttributesMax) {
        report_.attributes.emplace_back(std::move(key), std::move(value));
      }
    }
  }
  static std::string Beginning(std::string_view text) {
    return CleanText(text, validate_limits::kNameBytesMax);
  }

  void Finish() {
    events_.Finish();
    tracks_.Finish();
    TraceSummary& summary = report_.summary;
    report_.tracks = tracks_.TakeTracks();
    summary.file_bytes = packets_.bytes().file_bytes();
    summary.uncompressed_bytes = packets_.uncompressed_bytes();
    summary.is_gzip = packets_.bytes().is_gzip();
    summary.packets = packets_.packets();
    summary.compressed_packets = packets_.compressed_packets();
    summary.sequences = sequences_.size();
    summary.is_realtime = clocks_.is_realtime();
    for (const TraceTrack& track : report_.tracks) {
      summary.processes += track.kind == TrackKind::kProcess ? 1 : 0;
      summary.threads += track.kind == TrackKind::kThread ? 1 : 0;
      summary.counter_tracks += track.kind == TrackKind::kCounter ? 1 : 0;
      summary.other_tracks += track.kind == TrackKind::kPlain ? 1 : 0;
    }
  }

  TraceReport report_;
  PacketStream packets_;
  SequenceTable sequences_;
  ClockTable clocks_;
  std::optional<uint64_t> host_;  // the number that packets of the host have
  TrackList tracks_;
  EventCheck events_;
};

}  // namespace

absl::StatusOr<TraceReport> ValidateTrace(ReadBytes read) {
  return TraceValidator(std::move(read)).Run();
}

}  // namespace neurontrace
