// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/trace_validator.h"

#include <fmt/format.h>

#include <optional>
#include <protozero/exception.hpp>
#include <string>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/validate/clock_table.h"
#include "lib/validate/event_check.h"
#include "lib/validate/limits.h"
#include "lib/validate/packet_stream.h"
#include "lib/validate/perfetto_numbers.h"
#include "lib/validate/sequence_table.h"
#include "lib/validate/trace_message.h"
#include "lib/validate/track_list.h"

namespace neurontrace {
namespace {

// Attributes that are kept for the report; there are a handful in traces of neurontrace.
constexpr size_t kAttributesMax = 1'024;
// The attribute that neurontrace's exporter writes (docs/formats/pftrace.md).
constexpr std::string_view kOwnAttribute = "io.neurontrace.version";

// Reads the packets and passes their parts to the tables. docs/formats/validate.md describes the
// checks and the statistics of Perfetto to which they correspond.
class TraceValidator {
 public:
  explicit TraceValidator(ReadBytes read)
      : packets_(std::move(read), report_.findings),
        sequences_(report_.findings, report_.summary),
        clocks_(report_.findings),
        tracks_(report_.findings),
        events_(report_.findings, report_.summary, tracks_) {}

  // Reads all packets. A malformed packet is a finding, and the next one is read: its length is
  // known from the framing. Called once.
  absl::StatusOr<TraceReport> Run() {
    while (true) {
      std::string_view packet;
      ASSIGN_OR_RETURN(const bool has_packet, packets_.Next(packet));
      if (!has_packet) break;
      try {
        packet_.Parse(packet);
        TakePacket();
      } catch (const TraceMessage::TooManyFields&) {
        log().Add(TraceCheck::kLimit, "A message of the packet has more than {} fields.",
                  validate_limits::kFieldsMax);
        // protozero reports malformed messages only by exceptions. The next packet is independent
        // of this one.
      } catch (const protozero::exception& error) {
        log().Add(TraceCheck::kPacket, "The packet cannot be parsed: {}.", error.what());
      }
    }
    Finish();
    return std::move(report_);
  }

 private:
  TraceFindingLog& log() { return report_.findings; }

  // Handles the current packet. The order of the steps is that of Perfetto's importer, as each of
  // them may skip the packet.
  void TakePacket() {
    namespace packet = perfetto_read::packet;
    if (packet_.Has(packet::kCompressed)) return packets_.Open(packet_.Text(packet::kCompressed));
    if (packet_.Has(packet::kZstdCompressed)) {
      return log().AddUnchecked("packets compressed with zstd (field 133)");
    }
    if (packet_.Number(packet::kMachineId, 0) != 0) {
      return log().AddUnchecked("packets of other machines (machine_id)");
    }
    const auto id = static_cast<uint32_t>(packet_.Number(packet::kSequenceId, 0));
    if (packet_.Number(packet::kPreviousPacketDropped, 0) != 0) {
      ++report_.summary.packet_losses;
      log().Add(TraceCheck::kPacketLoss, "Packets of sequence {} were lost before this one.", id);
    }
    ReadAttributes(packet_.Text(packet::kTraceAttributes));
    TraceSequence* const sequence = SequenceOf(id);
    // Returns early where Perfetto ignores the rest.
    if (sequence != nullptr && !HandleState(id, *sequence)) return;
    // Perfetto ignores the rest of a packet with a snapshot.
    if (packet_.Has(packet::kClockSnapshot)) {
      return clocks_.HandleSnapshot(packet_.Text(packet::kClockSnapshot), id);
    }
    std::optional<uint64_t> time_ns;
    if (const auto timestamp = packet_.Number(packet::kTimestamp)) {
      uint64_t clock = packet_.Number(packet::kTimestampClockId, 0);
      if (clock == 0 && sequence != nullptr) clock = sequence->default_clock;
      time_ns = clocks_.ToTraceTime(*timestamp, clock, id);
      if (!time_ns) return;
    }
    if (packet_.Has(packet::kTrackDescriptor)) {
      tracks_.HandleDescriptor(packet_.Text(packet::kTrackDescriptor));
    }
    if (sequence == nullptr) return;
    if (packet_.Has(packet::kThreadDescriptor)) sequence->has_thread = true;
    if (packet_.Has(packet::kTrackEvent)) {
      events_.Take(packet_.Text(packet::kTrackEvent), *sequence, time_ns);
    }
  }

  // Returns the packet's flags, with the older field for a cleared state as one of them.
  uint64_t Flags() const {
    namespace packet = perfetto_read::packet;
    const bool is_cleared = packet_.Number(packet::kStateCleared, 0) != 0;
    return packet_.Number(packet::kSequenceFlags, 0) | (is_cleared ? packet::kFlagStateCleared : 0);
  }

  // Returns the packet's sequence. Returns nullptr if it belongs to none, which is a finding if the
  // packet needs one, or if there are too many.
  TraceSequence* SequenceOf(uint32_t id) {
    namespace packet = perfetto_read::packet;
    if (id != 0) return sequences_.Of(id);
    const char* const what = packet_.Has(packet::kTrackEvent)     ? "an event"
                             : packet_.Has(packet::kInternedData) ? "interned data"
                             : packet_.Has(packet::kDefaults)     ? "defaults"
                             : Flags() != 0                       ? "flags"
                             : packet_.Number(packet::kPreviousPacketDropped, 0) != 0 ? "a loss"
                                                                                      : nullptr;
    if (what != nullptr) {
      log().Add(TraceCheck::kSequenceId, "The packet has {} but belongs to no sequence.", what);
    }
    return nullptr;
  }

  // Applies flags, defaults and interned texts to the sequence. Returns false if Perfetto skips the
  // packet because the sequence lacks its state.
  bool HandleState(uint32_t id, TraceSequence& sequence) {
    namespace packet = perfetto_read::packet;
    if ((Flags() & packet::kFlagStateCleared) != 0) {
      sequences_.Clear(sequence);
    } else if (packet_.Number(packet::kPreviousPacketDropped, 0) != 0) {
      // The lost packets may have changed the state.
      sequence.has_state = false;
    }
    if (packet_.Has(packet::kDefaults)) {
      sequences_.ReadDefaults(packet_.Text(packet::kDefaults), sequence);
    }
    const bool has_interned = packet_.Has(packet::kInternedData);
    const bool needs_state =
        (Flags() & packet::kFlagNeedsState) != 0 && !packet_.Has(packet::kClockSnapshot);
    if (sequence.has_state) {
      if (has_interned) sequences_.ReadInterned(packet_.Text(packet::kInternedData), sequence);
    } else if (has_interned || needs_state) {
      log().Add(TraceCheck::kSequenceState,
                "The packet {} the state of sequence {}, which was not cleared{}.",
                has_interned ? "adds to" : "needs", id,
                sequence.was_cleared ? " since packets were lost" : "");
    }
    return sequence.has_state || !needs_state;
  }

  // Keeps the attributes of the trace. That of neurontrace's exporter enables the checks of its
  // arguments.
  void ReadAttributes(std::string_view bytes) {
    namespace attributes = perfetto_read::attributes;
    for (const TraceMessage message(bytes); const TraceMessage::Field& field : message) {
      if (field.tag != attributes::kAttribute) continue;
      const TraceMessage attribute(field.text);
      const auto number = attribute.Number(attributes::kLongValue);
      std::string key = Beginning(attribute.Text(attributes::kKey));
      if (key == kOwnAttribute) events_.TrustArguments();
      if (report_.attributes.size() < kAttributesMax) {
        report_.attributes.emplace_back(
            std::move(key), number ? fmt::format("{}", static_cast<int64_t>(*number))
                                   : Beginning(attribute.Text(attributes::kStringValue)));
      }
    }
  }
  // Returns the beginning of a text, cleaned for a terminal.
  static std::string Beginning(std::string_view text) {
    return CleanText(text, validate_limits::kNameBytesMax);
  }

  // Finishes the checks that need the whole file, then fills the summary.
  void Finish() {
    // Both checks look at the tracks, which are moved out below.
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

  // Declared first: the other members refer to it.
  TraceReport report_;
  PacketStream packets_;
  TraceMessage packet_;  // at hand
  SequenceTable sequences_;
  ClockTable clocks_;
  TrackList tracks_;
  EventCheck events_;
};

}  // namespace

absl::StatusOr<TraceReport> ValidateTrace(ReadBytes read) {
  return TraceValidator(std::move(read)).Run();
}

}  // namespace neurontrace
