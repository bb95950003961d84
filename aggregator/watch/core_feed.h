// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/insight/group_ids.h"
#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_event.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/decoded_chunk.h"
#include "lib/trace/watch_limits.h"

namespace neurontrace {

// Receives the events of cores, in the order of their ends for each core.
class InsightSink {
 public:
  virtual ~InsightSink() = default;
  virtual void OnEvent(const InsightEvent& event) = 0;
  // See InsightEngine::NameModel.
  virtual void OnModel(uint64_t model, std::string_view name) = 0;
};

// Makes insight events of the chunks of one core as they are stored: joins starts with stops,
// across chunks too, and knows what is open, what was lost, and until when the stream was alive.
// Times are those of the core's host. Bounded by the limits of lib/trace/watch_limits.h. Used by
// one thread at a time.
class CoreFeed {
 public:
  // Since the start.
  struct Counters {
    uint64_t events = 0;     // passed on
    uint64_t late = 0;       // dropped, as later events had been passed on
    uint64_t unmatched = 0;  // stops without a start
    uint64_t forgotten = 0;  // open spans beyond the limit

    Counters& operator+=(const Counters& other) {
      events += other.events;
      late += other.late;
      unmatched += other.unmatched;
      forgotten += other.forgotten;
      return *this;
    }
  };

  // `core` is the core's index in the engine.
  CoreFeed(uint32_t core, int64_t worker_gid) : core_(core), worker_gid_(worker_gid) {}

  // Takes the header of the next chunk that was stored, with its arrival on the aggregator's
  // monotonic clock. What the header reports as lost, and chunks that are missing, end open spans.
  // Called before Read.
  void TakeHeader(const ChunkHeader& header, uint64_t arrival_ns);
  // Passes on the events of that chunk. The columns are valid, as ingest has checked them.
  void Read(const DecodedChunk& chunk, GroupIds& groups, InsightSink& sink);
  // Marks events of the present chunk, or of chunks since, as lost without a number.
  void MarkLost();

  // Passes on what waits for order, and shows the spans that are open for long. Called before a
  // judgement; `alive_at_ns` as in CoreCondition.
  void ShowOpen(uint64_t alive_at_ns, InsightSink& sink);
  // Begins a new window: forgets the losses of the old one.
  void StartWindow();

  // Adds what was lost in the window to a condition.
  void AddLosses(CoreCondition& condition) const;
  // Whether calls of this class were left out in the window, to keep the budget of the watch:
  // either kMemory or kTransferIo. Their core is judged, but what fills its gaps is not known.
  bool LacksCalls(InsightClass calls) const;
  // Host time until which the stream is known to be alive by its own chunks, and the arrival of the
  // chunk that says so on the aggregator's monotonic clock. 0: never.
  uint64_t reached_ns() const { return reached_ns_; }
  uint64_t reached_arrival_ns() const { return reached_arrival_ns_; }
  bool has_ended() const { return has_ended_; }  // its last chunk is stored
  int64_t worker_gid() const { return worker_gid_; }
  const Counters& counters() const { return counters_; }
  size_t memory_bytes() const;

 private:
  struct Open {
    uint64_t tracking_id = 0;
    InsightEvent event;
  };
  // Calls of one class in a row, which wait as one event.
  struct CallRow {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    uint64_t last_begin_ns = 0;     // of the last call
    uint64_t length_before_ns = 0;  // covered by the calls before the last one
  };
  // What one shape of a chunk means.
  struct Plan;

  // Returns the plan of each shape.
  static std::vector<Plan> PlansOf(const DecodedChunk& chunk);
  InsightEvent EventOf(const DecodedChunk& chunk, size_t index, const Plan& plan, GroupIds& groups,
                       InsightSink& sink);
  uint64_t ModelOf(const DecodedChunk& chunk, size_t index, const Plan& plan, InsightSink& sink);
  void BeginSpan(uint64_t tracking_id, const InsightEvent& event);
  void EndSpan(uint64_t tracking_id, const InsightEvent& stop, InsightSink& sink);
  // Keeps the event until nothing earlier can come.
  void Hold(const InsightEvent& event, InsightSink& sink);
  // Adds a part of one physical core to that of another, if this waits still.
  bool JoinPart(const InsightEvent& part);
  // Adds a call to the row of its class, if nothing else has ended since.
  bool JoinCall(const InsightEvent& call);
  // Takes over which level of fidelity holds from now on.
  void SetLevel(uint64_t level);
  void Release(size_t count, InsightSink& sink);
  void AddLoss(uint64_t events, bool is_unknown, uint64_t begin_ns, uint64_t end_ns);

  const uint32_t core_;
  int64_t worker_gid_;
  std::vector<Open> open_;          // in the order of their starts
  std::vector<InsightEvent> held_;  // by end
  // Numbers of models with the hashes of their names, as some events have only the number.
  std::vector<std::pair<uint64_t, uint64_t>> models_;
  // By class: start of the latest span that has ended. Earlier ones are not open.
  std::array<uint64_t, 10> ended_start_ns_{};
  uint64_t released_ns_ = 0;  // end of the last event that was passed on
  uint64_t next_sequence_ = 0;
  bool has_chunks_ = false;
  bool has_ended_ = false;
  uint64_t newest_ns_ = 0;  // of its events
  uint64_t reached_ns_ = 0;
  uint64_t reached_arrival_ns_ = 0;
  CoreCondition losses_;  // of the window
  CallRow io_row_;
  CallRow memory_row_;
  // The level of fidelity, as lib/trace/fidelity.h defines it, and the highest of the window.
  uint8_t level_ = 0;
  uint8_t level_in_window_ = 0;
  bool is_level_known_ = false;  // an event has said it, which is exact
  Counters counters_;
};

}  // namespace neurontrace
