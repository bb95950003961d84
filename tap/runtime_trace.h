// SPDX-License-Identifier: Apache-2.0
// Our trace in the runtime: starts it, fetches its rings core by core into the shared ring, all the
// time or, where it holds them, once when told to; stops it. Runs on the tap's thread; the caller
// makes sure that the runtime may be called (RuntimeGate).
#pragma once

#include "tap/capture_spec.h"
#include "tap/drain_schedule.h"
#include "tap/nrt_library.h"
#include "tap/ring_writer.h"
#include "tap/tap_clock.h"

namespace neurontrace::tap {

// How many events a document of this size holds, judged by its first bytes: the tap does not parse.
uint64_t EstimateEvents(const char* json, uint64_t json_bytes);
// What it holds by all of its bytes: for one that is about to be lost.
RefusedDocument LookAtRefused(const char* json, uint64_t json_bytes);

class RuntimeTrace {
 public:
  static constexpr uint64_t kEventsPerFetchMax = 4096;
  static constexpr uint64_t kFinalDrainBudgetNs = 2 * kNsPerSecond;
  static constexpr uint64_t kFinalDrainUrgentNs = 50 * kNsPerMs;  // so near to overwriting
  static constexpr uint32_t kFetchErrorsInARowMax = 8;
  // A round of fetches ends after this much, so that the agent's commands are never waited for.
  static constexpr uint32_t kFetchesPerCoreARound = 16;
  static constexpr uint64_t kRoundBudgetNs = 100 * kNsPerMs;

  // Of what was held, where the agent is slow to make room: what is not here by then never is.
  static constexpr uint64_t kCollectBudgetNs = 30 * kNsPerSecond;
  static constexpr uint64_t kCollectPauseNs = 5 * kNsPerMs;

  struct Start {
    NrtStatus status;
    uint32_t unknown_names;  // event types that this runtime does not have
    bool unfiltered;         // the runtime lacks what the spec's filters need
  };

  void Attach(const NrtLibrary* library, RingWriter* ring, TapBufferCounters* counters,
              const TapClock* clock, uint64_t ring_bytes);

  // Starts the trace and writes TRACE_STARTED. `resumed`: the same capture ran before. One that
  // holds is not fetched before BeginCollection.
  Start Begin(const CaptureSpec& spec, bool resumed);

  // Fetches the cores that are due, in the order of DrainSchedule, for one round at the longest.
  // Returns early, between two fetches, when `interrupt` is not 0. False: the trace is not there
  // any more.
  bool DrainDue(const std::atomic<uint32_t>& interrupt);

  // From here to EndCollection what the rings of a trace that holds have is recorded under
  // `capture_id`. Collect fetches a round of it, and gives way to `interrupt` as DrainDue does; it
  // is done with a core whose last document was small, or that returned as many events as its ring
  // can hold.
  enum class Collected { kMore, kDone, kGone };
  void BeginCollection(const CaptureSpec& spec, const uint8_t* capture_id);
  Collected Collect(const std::atomic<uint32_t>& interrupt);
  void EndCollection(TapStopReason reason);

  // Fetches every core until it comes back thin, the one nearest to overwriting first, and then
  // every one once more, the loudest last, all within the time budget; then stops the trace if
  // `call_stop`, and writes LOSS and TRACE_STOPPED. The last fetch of a core is where the capture
  // ends for it: nothing tells how much the runtime records from there to its own stop. Of a trace
  // that holds only what is being collected is fetched.
  void End(TapStopReason reason, bool call_stop);

  bool running() const { return running_; }
  bool holds() const { return running_ && holds_; }
  bool collecting() const { return collecting_; }
  uint64_t NextDueNs() const {
    if (!running_) return kNeverNs;
    if (holds_) return collecting_ ? collect_due_ns_ : kNeverNs;
    return schedule_.NextDueNs();
  }
  NrtStatus last_error() const { return last_error_; }

 private:
  enum class Fetched { kFull, kThin, kError };

  NrtStatus Configure(const CaptureSpec& spec, NrtTraceConfig* config, Start* start);
  void ConfigureCores(const CaptureSpec& spec, NrtTraceConfig* config, Start* start);
  void ConfigureEventTypes(const CaptureSpec& spec, NrtTraceConfig* config, Start* start);
  void PrepareFetch(const CaptureSpec& spec);
  void WriteStarted(const CaptureSpec& spec, uint16_t flags);
  void WriteStopped(TapTraceStopped stopped, uint64_t documents_at_start,
                    uint64_t refused_at_start);
  uint32_t NextToCollect() const;
  Fetched Fetch(uint32_t slot, uint16_t flags, uint64_t* events);
  bool DrainEveryCore();
  uint32_t NextOfRound(const uint8_t* thin, uint8_t rounds, uint32_t after) const;
  uint32_t MostUrgent(const uint8_t* thin, uint64_t now_ns) const;
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

  // The cores to fetch, by slot; one slot kTapNoCore where the runtime can only give all at once.
  uint32_t slot_count_ = 0;
  uint32_t slot_core_[kTapMaxCores] = {};
  DrainSchedule schedule_;
};

}  // namespace neurontrace::tap
