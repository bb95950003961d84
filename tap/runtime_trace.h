// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tap/capture_spec.h"
#include "tap/drain_schedule.h"
#include "tap/nrt_library.h"
#include "tap/ring_writer.h"
#include "tap/tap_clock.h"

// The tap's trace in the runtime: starts it, fetches its rings core by core into the shared ring,
// and stops it. A trace that holds is fetched only on request. Runs on the tap's thread; the caller
// ensures that the runtime may be called (RuntimeGate). All times are ns of CLOCK_MONOTONIC.
namespace neurontrace::tap {

// Returns about how many events a document of this size has, judged by its first bytes: the tap
// does not parse JSON.
uint64_t EstimateEvents(const char* json, uint64_t json_bytes);
// Returns the number of events in a document and their highest sequence number, from all of its
// bytes: for a document that is about to be lost.
RefusedDocument ScanRefused(const char* json, uint64_t json_bytes);

class RuntimeTrace {
 public:
  // Events in one fetch of one core. A larger fetch takes longer, and an application thread that
  // needs the runtime waits for one fetch.
  static constexpr uint64_t kEventsPerFetchMax = 4096;
  // The longest time of the last drain, during which the application may wait in nrt_close.
  static constexpr uint64_t kFinalDrainBudgetNs = 2 * kNsPerSecond;
  static constexpr uint64_t kFinalDrainUrgentNs =
      50 * kNsPerMs;  // nearer to overwriting than this is urgent
  // After this many failed fetches in a row the trace counts as lost.
  static constexpr uint32_t kFetchErrorsInARowMax = 8;
  // A round of fetches ends after this number or time, so that commands of the agent are served in
  // between.
  static constexpr uint32_t kFetchesPerCoreARound = 16;
  static constexpr uint64_t kRoundBudgetNs = 100 * kNsPerMs;

  // The longest time of a collection, if the agent is slow to make room. Events not collected by
  // then are given up.
  static constexpr uint64_t kCollectBudgetNs = 30 * kNsPerSecond;
  static constexpr uint64_t kCollectPauseNs = 5 * kNsPerMs;

  // The outcome of Begin.
  struct Start {
    NrtStatus status;
    uint32_t unknown_names;  // event types that this runtime does not have
    bool unfiltered;         // the runtime lacks what the spec's filters need
  };

  // All pointers must outlive this. `ring_bytes` is the size of the shared ring.
  void Attach(const NrtLibrary* library, RingWriter* ring, TapBufferCounters* counters,
              const TapClock* clock, uint64_t ring_bytes);

  // Starts the trace and writes TRACE_STARTED. `resumed`: the same capture ran before. A trace that
  // holds is not fetched before BeginCollection.
  Start Begin(const CaptureSpec& spec, bool resumed);

  // Fetches the cores that are due, in the order of DrainSchedule, for at most one round. Returns
  // early, between two fetches, when `interrupt` is not 0. Returns false if the trace does not
  // exist any more.
  bool DrainDue(const std::atomic<uint32_t>& interrupt);

  // From BeginCollection to EndCollection the contents of held rings are recorded under
  // `capture_id`. Collect fetches one round and yields to `interrupt` as DrainDue does. It is done
  // with a core whose last document was small, or that returned as many events as its ring can
  // hold.
  enum class Collected { kMore, kDone, kGone };
  void BeginCollection(const CaptureSpec& spec, const uint8_t* capture_id);
  Collected Collect(const std::atomic<uint32_t>& interrupt);
  void EndCollection(TapStopReason reason);

  // Fetches every core until it comes back thin, the one nearest to overwriting first, and then
  // every core once more, the busiest last, all within the time budget. Then stops the trace if
  // `call_stop`, and writes LOSS and TRACE_STOPPED. A core's capture ends with its last fetch: the
  // number of events that the runtime records from there to its own stop is unknown. A trace that
  // holds is fetched only if a collection is in progress.
  void End(TapStopReason reason, bool call_stop);

  bool running() const { return running_; }
  bool holds() const { return running_ && holds_; }
  bool collecting() const { return collecting_; }
  // Returns when DrainDue or Collect has work, or kNeverNs.
  uint64_t NextDueNs() const {
    if (!running_) return kNeverNs;
    if (holds_) return collecting_ ? collect_due_ns_ : kNeverNs;
    return schedule_.NextDueNs();
  }
  // Returns the runtime's status of the last fetch that failed since Begin.
  NrtStatus last_error() const { return last_error_; }

 private:
  // The outcome of one fetch. kFull: the core may have more events waiting.
  enum class Fetched { kFull, kThin, kError };

  // Set the options of a trace in `config` from the spec. A runtime that lacks a filter records
  // more than was asked for, which `start` reports. Configure fails with kNrtResource if the size
  // of the rings cannot be limited.
  NrtStatus Configure(const CaptureSpec& spec, NrtTraceConfig* config, Start* start);
  void ConfigureCores(const CaptureSpec& spec, NrtTraceConfig* config, Start* start);
  void ConfigureEventTypes(const CaptureSpec& spec, NrtTraceConfig* config, Start* start);
  // Finds the cores to fetch and sets how many events a fetch may return. Called once the trace has
  // started.
  void PrepareFetch(const CaptureSpec& spec);
  void WriteStarted(const CaptureSpec& spec, uint16_t flags);
  // Writes the open losses and TRACE_STOPPED, with the documents written and refused since the
  // given counts.
  void WriteStopped(TapTraceStopped stopped, uint64_t documents_at_start,
                    uint64_t refused_at_start);
  // Returns the next slot in turn that is not done, or DrainSchedule::kNoSlot.
  uint32_t NextToCollect() const;
  // Fetches one core into the ring and sets the estimated number of events.
  Fetched Fetch(uint32_t slot, uint16_t flags, uint64_t* events);
  // Makes the last fetches. Returns whether every core came back thin within the budget.
  bool DrainEveryCore();
  // Choose the next slot of the last drain. `thin` has for each slot the last round in which it
  // came back thin. Both return DrainSchedule::kNoSlot if there is none.
  uint32_t NextOfRound(const uint8_t* thin, uint8_t rounds, uint32_t after) const;
  uint32_t MostUrgent(const uint8_t* thin, uint64_t now_ns) const;
  // Returns the room that the ring must have before a fetch.
  uint64_t ReservedBytes() const;

  const NrtLibrary* library_ = nullptr;
  RingWriter* ring_ = nullptr;
  TapBufferCounters* counters_ = nullptr;
  const TapClock* clock_ = nullptr;
  uint64_t ring_bytes_ = 0;

  bool running_ = false;
  NrtFetchOptions* options_ = nullptr;
  uint64_t events_per_fetch_ = 0;  // bound of one fetch of one core
  uint64_t largest_document_ = 0;  // recent largest, decays slowly
  uint32_t errors_in_a_row_ = 0;
  NrtStatus last_error_ = kNrtSuccess;
  uint64_t documents_at_start_ = 0;
  uint64_t refused_at_start_ = 0;

  bool holds_ = false;
  uint8_t capture_id_[kTapCaptureIdBytes] = {};
  uint64_t ring_events_ = 0;  // of one core in the runtime
  bool collecting_ = false;
  bool collected_all_ = false;
  uint64_t collect_begun_ns_ = 0;
  uint64_t collect_due_ns_ = 0;
  uint32_t collect_last_ = 0;                 // slot that was fetched last
  uint64_t collect_left_[kTapMaxCores] = {};  // events to expect at most, by slot; 0: done
  uint64_t collect_documents_at_start_ = 0;
  uint64_t collect_refused_at_start_ = 0;

  // The cores to fetch, by slot; a single slot kTapNoCore if the runtime can only return all at
  // once.
  uint32_t slot_count_ = 0;
  uint32_t slot_core_[kTapMaxCores] = {};
  DrainSchedule schedule_;
};

}  // namespace neurontrace::tap
