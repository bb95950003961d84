// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/export/exporter.h"
#include "aggregator/store/digest_store.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/view/digest.h"

namespace neurontrace {

// What a view takes from digests.
enum class DigestUse : uint8_t {
  kItems,   // items of digests whose chunks are wholly inside the window
  kSums,    // the sums of such digests
  kCounts,  // of these sums only how many events of each name begin when, in any order
  kBins,    // the bins of all digests that overlap the window
};

// One item of a digest as a view draws it. Valid until the next call of DigestFeed.
struct DigestedEvent {
  uint32_t stream = 0;    // index into TimelineHeader::streams
  uint64_t start_ns = 0;  // reference time
  uint64_t end_ns = 0;
  uint64_t longest_ns = 0;
  uint32_t count = 1;
  uint8_t flags = 0;  // kView…
  double value = 0;   // of a counter
  const DigestRow* row = nullptr;
  const DigestName* name = nullptr;
};

// The sums of one digest. Valid until the next call of DigestFeed::NextSums.
struct DigestedSums {
  uint32_t stream = 0;               // index into TimelineHeader::streams
  const ClockMap* clock = nullptr;   // from raw to reference time
  uint64_t known_until_ns = 0;       // where open spans end, reference time
  const DigestNode* node = nullptr;  // without sums and items
  bool is_first = false;             // of its stream
  DigestSums sums;
};

// A span that begins in a digest and ends in a later chunk or digest, or behind the window.
struct DigestedCrossing {
  uint32_t stream = 0;    // index into TimelineHeader::streams
  uint64_t start_ns = 0;  // reference time
  uint64_t end_ns = 0;
  const DigestRow* row = nullptr;
  const DigestName* name = nullptr;
  bool is_summed = false;  // it begins in a digest of the view, whose sums have it
};

// The digests that take the place of chunks in one view of a window. The coarsest that are fine
// enough are used; everything else is read chunk by chunk. Together they have each event of the
// window once. With DigestUse::kBins, digests at the window's ends have events outside, too.
//
// A span that begins in one part and ends in the other is the reason for most of this class: only
// one of the two may show it.
class DigestFeed {
 public:
  static constexpr uint64_t kBinExcessMax = 8;
  struct Window {
    uint64_t from_ns = 0;  // reference time
    uint64_t to_ns = 1;
    // Spans that are narrower may be merged; with sums and bins, times need not be more exact than
    // this. The finest sums are used however coarse they are, the finest bins up to kBinExcessMax
    // times as wide.
    uint64_t merge_ns = 1;
    DigestUse use = DigestUse::kItems;
  };
  // What digests are chosen for. All of it must outlive the feed.
  struct Capture {
    const CaptureDescription& description;
    const CaptureClocks& clocks;
    const std::vector<uint32_t>& streams;  // numbers of those that the view shows
  };

  // Reads the digests. Streams in `excluded` get none. Fails with errors of store and source.
  static absl::StatusOr<DigestFeed> Make(const DigestStore& store, ChunkSource& source,
                                         const Capture& capture, const Window& window,
                                         const absl::flat_hash_set<uint32_t>& excluded);
  // Returns roughly how many chunks of the streams the window touches, without reading anything.
  static uint64_t ChunksInWindow(const Capture& capture, const Window& window);

  // Returns whether the digests have all chunks of the stream, so that not even its index has to be
  // read. Any thread, once the feed is made.
  bool HasAll(uint32_t stream) const;
  // Hides the chunks that digests have from a reader: their entries lose their events, but not the
  // stops of other chunks' spans. Called on the reading thread; nothing else of it is meanwhile.
  void Mask(uint32_t stream, std::vector<ChunkEntry>& entries);
  // Returns the streams with a chunk that may have the start of a span that a digest counts as
  // start-lost. The view is wrong for them and has to be made again without their digests. Requires
  // that the reading has ended.
  const absl::flat_hash_set<uint32_t>& conflicts() const { return conflicts_; }

  uint64_t chunks() const { return chunks_; }  // that digests have
  uint64_t digests() const { return digests_; }
  uint64_t unreadable_chunks() const { return unreadable_chunks_; }
  // Width of the coarsest bins in use; 0 without digests.
  uint64_t bin_max_ns() const { return bin_max_ns_; }
  // How far a time of a device may be from the runtime's, which digests have; 0 without digests,
  // and where no device's clock is known.
  uint64_t device_shift_ns() const { return chunks_ == 0 ? 0 : device_shift_ns_; }

  // The following are called by the collector of the view, in this order.

  void Begin(const TimelineHeader& header);
  // Returns whether an event that was read is in a digest already: the stop of a span that begins
  // there. Called for every event that is read.
  bool HasEvent(const TimelineRecord& record);
  // Returns the next event that is to be drawn before one that begins and ends at these times, or
  // nullptr. Digests that cannot be decoded are counted as unreadable.
  const DigestedEvent* Next(uint64_t start_ns, uint64_t end_ns);

  // With all uses but DigestUse::kItems the following take the place of Next.

  // Returns the next digest that begins no later than `start_ns`, or nullptr. With kCounts and
  // kBins, the others of a stream may follow its first whenever they begin. Digests that cannot
  // be read are counted as unreadable.
  const DigestedSums* NextSums(uint64_t start_ns);
  // Returns the next span from before the window that no sums have, and that was not read. Called
  // once everything from before the window has been read.
  const DigestedEvent* NextIncoming();
  // Returns the spans that end behind their digest, in the order of their starts.
  std::vector<DigestedCrossing> Crossing() const;

 private:
  // A digest in use. Items and sums are read once the view reaches them.
  struct Part {
    DigestNode node;
    uint8_t level = 0;
    uint64_t place = 0;  // StoredDigest::first
    size_t at = 0;
    bool is_decoded = false;
  };
  struct Stream {
    uint32_t number = 0;
    uint32_t index = UINT32_MAX;  // in the header
    const StreamDescription* description = nullptr;
    const ClockMap* clock = nullptr;
    uint64_t known_until_ns = 0;  // where open spans end, reference
    uint64_t from_raw_ns = 0;     // of the window; not before the stream's first event
    std::vector<Part> parts;      // by sequence
    bool has_all = false;         // the parts are the whole stream
    // For each part the greatest DigestNode::lost_until_ns of it and those before.
    std::vector<uint64_t> lost_until_ns;
  };
  // The next item of a part, as a min-heap orders them.
  struct Turn {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t stream = 0;  // index into streams_
    uint32_t part = 0;
    bool operator>(const Turn& other) const {
      // The longer of two that begin together comes first, as in TimeOrder.
      return std::tuple(start_ns, other.end_ns, stream, part) >
             std::tuple(other.start_ns, end_ns, other.stream, other.part);
    }
  };
  using SpanKey = std::tuple<uint32_t, uint64_t, uint64_t>;  // stream number, type, raw time

  DigestFeed(const Window& window, const CaptureId& capture, std::unique_ptr<DigestReader> reader)
      : window_(window), capture_(capture), reader_(std::move(reader)) {}
  absl::Status ChooseParts(ChunkSource& source, Stream& stream) const;
  // Returns whether a part has any of the node's sequences.
  // Returns the stream's digests of the level that may have these sequences, except for those that
  // its parts have already.
  std::vector<Part> ReadHeads(const Stream& stream, uint8_t level, uint64_t lowest,
                              uint64_t last) const;
  static bool IsTaken(const std::vector<Part>& parts, const DigestNode& node);
  bool IsUsable(const Stream& stream, const DigestNode& node, uint8_t level) const;
  bool IsFineEnough(const DigestNode& node, uint8_t level) const;
  // Notes the spans that begin in these digests and end elsewhere, and the reverse.
  void NoteCrossing(Stream& stream);
  // Returns when all parts of the stream have their turn, one after the other; nullopt: each at its
  // own time.
  std::optional<uint64_t> GroupedAt(const Stream& stream) const;
  // Makes the part's next item its turn. Decodes the part if it is its first.
  void Queue(uint32_t stream, uint32_t part);
  void Fill(const Stream& stream, const DigestNode& node, const DigestItem& item);
  // Returns the items or sums of the part, which are at levels higher by `levels`.
  absl::StatusOr<std::string> ReadValue(const Stream& stream, const Part& part,
                                        uint8_t levels) const;
  static uint64_t Reference(const Stream& stream, uint64_t raw_ns);

  const Window window_;
  const CaptureId capture_;
  std::unique_ptr<DigestReader> reader_;
  const TimelineHeader* header_ = nullptr;
  std::vector<Stream> streams_;
  absl::flat_hash_map<uint32_t, size_t> stream_of_;  // by number
  // Stops of spans that digests draw, with how many.
  absl::flat_hash_map<SpanKey, uint32_t> pending_;
  // Spans from before the window that end in a digest, by their start, until one is read.
  struct Incoming {
    uint32_t stream = 0;  // index into streams_
    const DigestNode* node = nullptr;
    const DigestSpan* span = nullptr;
  };
  std::vector<Incoming> incoming_;
  size_t incoming_at_ = 0;
  absl::flat_hash_map<SpanKey, uint32_t> read_;
  std::vector<Turn> turns_;  // min-heap
  DigestedEvent event_;
  DigestedSums summed_;
  uint64_t bin_max_ns_ = 0;
  uint64_t device_shift_ns_ = 0;
  uint64_t chunks_ = 0;
  uint64_t digests_ = 0;
  uint64_t unreadable_chunks_ = 0;
  absl::flat_hash_set<uint32_t> conflicts_;
};

}  // namespace neurontrace
