// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "aggregator/store/store.h"
#include "aggregator/view/capture_layout.h"
#include "aggregator/view/digest_feed.h"
#include "aggregator/view/event_collector.h"
#include "aggregator/view/event_linker.h"
#include "aggregator/view/heat_matrix.h"
#include "aggregator/view/span_answer.h"
#include "aggregator/view/time_sample.h"
#include "aggregator/view/view_request.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/event_filter.h"

namespace neurontrace {

// Knows the clocks of captures. Implemented by the aggregator over its ClockService. Any thread.
class ViewClocks {
 public:
  virtual ~ViewClocks() = default;
  // May block while the clocks of a capture are fitted.
  virtual absl::StatusOr<CaptureClocks> ClocksOf(const CaptureRecord& record) = 0;
};

// Answers the page's questions about stored captures, running ones included. Each answer reads a
// snapshot of the store on the calling thread and two more, and leaves ingest alone. Keeps the
// layouts of the captures asked about last. Any thread.
//
// All functions fail with INVALID_ARGUMENT for an unacceptable request, which the message names,
// and with errors of the store.
class CaptureViews {
 public:
  // All of them must outlive this.
  struct Deps {
    const Store& store;
    ViewClocks& clocks;
    const Clock& clock;
  };
  // Chunks that one answer may read, and from how many on it uses digests; a test sets fewer.
  explicit CaptureViews(const Deps& deps, uint64_t chunks_max = limits::kViewChunksMax,
                        uint64_t exact_chunks_max = limits::kViewExactChunksMax)
      : deps_(deps), chunks_max_(chunks_max), exact_chunks_max_(exact_chunks_max) {}

  // Returns the layout, which may be a few seconds old while the capture runs.
  absl::StatusOr<std::shared_ptr<const CaptureLayout>> Layout(const CaptureRecord& record);

  // The answers of docs/formats/view_api.md. `cancelled` ends a reading whose client is gone.
  absl::StatusOr<std::string> Spans(const CaptureRecord& record, const ViewRequest& request,
                                    const ViewCancel& cancelled);
  absl::StatusOr<std::string> Events(const CaptureRecord& record, const ViewRequest& request,
                                     const ViewCancel& cancelled);
  absl::StatusOr<std::string> Search(const CaptureRecord& record, const ViewRequest& request,
                                     const ViewCancel& cancelled);
  absl::StatusOr<std::string> Summary(const CaptureRecord& record, const ViewRequest& request,
                                      const ViewCancel& cancelled);
  absl::StatusOr<std::string> Heat(const CaptureRecord& record, const ViewRequest& request,
                                   const ViewCancel& cancelled);
  absl::StatusOr<std::string> Links(const CaptureRecord& record, const ViewRequest& request,
                                    const ViewCancel& cancelled);

 private:
  class LayoutReader;  // reads windows for EventLinker
  struct Known {
    CaptureId id;
    std::shared_ptr<const CaptureLayout> layout;
    uint64_t made_at_ns = 0;
  };

  // What Read leaves out, and when it ends early.
  struct ReadOptions {
    bool takes_host_samples = false;
    // A list needs one chunk of each stream to know which events come first: so many may be read
    // even if that is more than chunks_max_.
    bool reads_each_stream = false;
    EventFilter types;              // of the events that are passed on
    DigestFeed* digests = nullptr;  // take the place of their chunks
    TimeSample sample;              // chunks wholly outside are not read
    ViewCancel is_done;             // the answer has all that it may have; null: never
  };
  // Passes the window of the request to `exporter`. A reading that `is_done` ended is a success,
  // and describes what was read until then.
  absl::StatusOr<ViewReading> Read(const CaptureLayout& layout, const ViewRequest& request,
                                   const ViewCancel& cancelled, Exporter& exporter,
                                   const ReadOptions& options);
  // Returns the digests for a view of the request at `pixels`; nullptr if the window has so few
  // chunks that all are read. Halves `pixels` while more chunks would have to be read than an
  // answer may, and coarser digests could take the place of some.
  absl::StatusOr<std::unique_ptr<DigestFeed>> FindDigests(
      const CaptureLayout& layout, const ViewRequest& request,
      const absl::flat_hash_set<uint32_t>& excluded, uint32_t& pixels) const;
  // Makes the answer of Spans once. `excluded` are streams without digests; it gets those that
  // turned out to need their chunks. Then nothing is returned, and the caller repeats the call.
  absl::StatusOr<std::optional<SpanAnswer>> CollectSpans(const CaptureLayout& layout,
                                                         const ViewRequest& request,
                                                         const ViewCancel& cancelled,
                                                         absl::flat_hash_set<uint32_t>& excluded);
  // What a collector of sums or bins read. `digests` is nullptr if the window has so few chunks
  // that all are read.
  struct DigestedReading {
    ViewReading reading;
    std::unique_ptr<DigestFeed> digests;
  };
  // Makes a collector with make(DigestFeed*), which returns a reference to it, and passes the
  // window of the request to it. Does so once more without the digests of streams that turned out
  // to need their chunks. Defined where it is used.
  template <typename Make>
  absl::StatusOr<DigestedReading> ReadDigested(const CaptureLayout& layout,
                                               const ViewRequest& request, DigestUse use,
                                               uint64_t merge_ns, const ViewCancel& cancelled,
                                               const Make& make);
  // Answers `late` and `step`, which need all ranks of a moment and so cannot use digests. Where
  // the window has too many chunks, columns of time show a sample.
  template <typename Map>
  absl::StatusOr<std::string> ComparedHeat(const CaptureLayout& layout, const ViewRequest& request,
                                           const HeatWindow& window, const HeatShape& shape,
                                           bool is_by_step, const ViewCancel& cancelled);
  // Answers a search whose hits digests can count.
  absl::StatusOr<std::string> CountedSearch(const CaptureLayout& layout, const ViewRequest& request,
                                            const EventCollector::Options& options,
                                            const ViewCancel& cancelled);
  // Returns the layout if it is known, recent enough and of the same record.
  std::shared_ptr<const CaptureLayout> Find(const CaptureRecord& record);
  void Keep(const CaptureRecord& record, std::shared_ptr<const CaptureLayout> layout);

  const Deps deps_;
  const uint64_t chunks_max_;
  const uint64_t exact_chunks_max_;
  Mutex mutex_;
  std::list<Known> known_ NT_GUARDED_BY(mutex_);  // the one asked about last is first
};

}  // namespace neurontrace
