// SPDX-License-Identifier: Apache-2.0
// The runtime keeps events in one ring per core, which overwrites its oldest events when it is
// full. A fetch removes events from a ring and returns them as a JSON document. The tap copies
// documents whole: it only counts keys in them (event_type, nc_local_id), as parsing would cost the
// worker processor time.
//
// Two rings can overflow, and each in a way that a reader can count. If the shared ring has no
// room, the tap stops fetching, and what the runtime overwrites meanwhile is a hole in nc_local_id.
// If a document turns out larger than the room, its events are counted exactly and reported in a
// LOSS record.
#include "tap/runtime_trace.h"

#include <stdlib.h>
#include <string.h>

namespace neurontrace::tap {
namespace {

// Within a JSON string the quotes would be escaped, so these can only be keys.
constexpr char kEventKey[] = "\"event_type\"";
constexpr char kIdKey[] = "\"nc_local_id\"";
// Estimates in bytes: of an event, of the part of a document that EstimateEvents searches, and of
// the room that a fetch needs at least.
constexpr uint64_t kTypicalEventBytes = 350;
constexpr uint64_t kSampleBytes = 8 * 1024;
constexpr uint64_t kSmallestDocumentReserve = 64 * 1024;
// The vendor's own examples disable cores 0 to 127 before they enable some.
constexpr uint32_t kCoresToDisableMin = 128;

// Adds to a counter of the shared header. The tap is its only writer, so that no locked instruction
// is needed.
void Add(std::atomic<uint64_t>* counter, uint64_t by) {
  counter->store(counter->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// An empty envelope has a few dozen bytes; no event is that small.
bool HoldsNoEvent(uint64_t json_bytes) { return json_bytes < 64; }

// Calls visit(behind) with each place after `key`.
template <size_t kSize, typename Visit>
void ForEachKey(const char* json, uint64_t json_bytes, const char (&key)[kSize], Visit visit) {
  const char* const end = json + json_bytes;
  for (const char* at = json; at < end;) {
    at = static_cast<const char*>(memmem(at, static_cast<size_t>(end - at), key, kSize - 1));
    if (at == nullptr) return;
    at += kSize - 1;
    visit(at);
  }
}

// Returns one more than the number after a key, or 0 if there is none.
uint64_t IdEnd(const char* at, const char* end) {
  while (at < end && (*at == ' ' || *at == ':')) ++at;
  const char* const digits = at;
  uint64_t id = 0;
  for (; at < end && *at >= '0' && *at <= '9'; ++at) {
    const auto digit = static_cast<uint64_t>(*at - '0');
    // Overflow: not a number of a runtime.
    if (id > (UINT64_MAX - 1 - digit) / 10) return 0;
    id = id * 10 + digit;
  }
  return at == digits ? 0 : id + 1;
}

}  // namespace

uint64_t EstimateEvents(const char* json, uint64_t json_bytes) {
  if (HoldsNoEvent(json_bytes)) return 0;
  const uint64_t sample = json_bytes < kSampleBytes ? json_bytes : kSampleBytes;
  const char* const end = json + sample;
  uint64_t found = 0;
  const char* first = nullptr;
  const char* last = json;
  for (const char* at = json; at < end; at += sizeof kEventKey - 1) {
    at = static_cast<const char*>(
        memmem(at, static_cast<size_t>(end - at), kEventKey, sizeof kEventKey - 1));
    if (at == nullptr) break;
    if (first == nullptr) first = at;
    last = at;
    ++found;
  }
  if (sample == json_bytes) return found > 0 ? found : 1;
  // Events of one document have similar sizes, so the mean of the first ones is good enough for a
  // schedule.
  const uint64_t per_event =
      found >= 2 ? static_cast<uint64_t>(last - first) / (found - 1) : kTypicalEventBytes;
  return json_bytes / per_event + 1;
}

RefusedDocument ScanRefused(const char* json, uint64_t json_bytes) {
  RefusedDocument document = {.json_bytes = json_bytes, .events = 0, .ids_end = 0};
  if (HoldsNoEvent(json_bytes)) return document;
  ForEachKey(json, json_bytes, kEventKey, [&](const char*) { ++document.events; });
  if (document.events == 0) document.events = 1;
  ForEachKey(json, json_bytes, kIdKey, [&](const char* behind) {
    const uint64_t ids_end = IdEnd(behind, json + json_bytes);
    if (ids_end > document.ids_end) document.ids_end = ids_end;
  });
  return document;
}

void RuntimeTrace::Attach(const NrtLibrary* library, RingWriter* ring, TapBufferCounters* counters,
                          const TapClock* clock, uint64_t ring_bytes) {
  library_ = library;
  ring_ = ring;
  counters_ = counters;
  clock_ = clock;
  ring_bytes_ = ring_bytes;
}

RuntimeTrace::Start RuntimeTrace::Begin(const CaptureSpec& spec, bool resumed) {
  Start start = {};
  NrtTraceConfig* config = nullptr;
  start.status = library_->config_allocate(&config);
  if (start.status != kNrtSuccess) return start;
  start.status = Configure(spec, config, &start);
  if (start.status == kNrtSuccess) start.status = library_->trace_start(config);
  library_->config_free(config);
  if (start.status != kNrtSuccess) return start;

  running_ = true;
  holds_ = spec.holds;
  ring_events_ = spec.max_events_per_nc;
  errors_in_a_row_ = 0;
  last_error_ = kNrtSuccess;
  PrepareFetch(spec);
  // Only after the start has succeeded: a refused start leaves no record.
  memcpy(capture_id_, spec.capture_id, sizeof capture_id_);
  ring_->SetCapture(capture_id_);
  documents_at_start_ = ring_->documents();
  refused_at_start_ = ring_->refused_documents();
  WriteStarted(spec, resumed ? kTapRecordFlagResumed : 0);
  return start;
}

NrtStatus RuntimeTrace::Configure(const CaptureSpec& spec, NrtTraceConfig* config, Start* start) {
  // Without a limit the runtime allocates over a hundred megabytes for each core: the tap refuses
  // rather than risks that.
  if (library_->config_set_max_events_per_nc == nullptr) return kNrtResource;
  library_->config_set_max_events_per_nc(config, spec.max_events_per_nc);
  if (!spec.WantsEveryCore()) ConfigureCores(spec, config, start);
  if (spec.event_rule != TapEventRule::kAll) ConfigureEventTypes(spec, config, start);
  return kNrtSuccess;
}

void RuntimeTrace::ConfigureCores(const CaptureSpec& spec, NrtTraceConfig* config, Start* start) {
  if (library_->config_set_enabled_for_nc == nullptr) {
    start->unfiltered = true;
    return;
  }
  uint32_t cores = 0;
  if (library_->get_visible_vnc_count != nullptr) library_->get_visible_vnc_count(&cores);
  if (cores < kCoresToDisableMin) cores = kCoresToDisableMin;
  if (cores > kTapMaxCores) cores = kTapMaxCores;
  for (uint32_t core = 0; core < cores; ++core) {
    library_->config_set_enabled_for_nc(config, core, spec.Wants(core));
  }
}

void RuntimeTrace::ConfigureEventTypes(const CaptureSpec& spec, NrtTraceConfig* config,
                                       Start* start) {
  const bool only = spec.event_rule == TapEventRule::kOnlyThese;
  if (library_->config_set_enabled_for_event_type == nullptr ||
      (only && library_->get_event_types == nullptr)) {
    start->unfiltered = true;
    return;
  }
  // Everything is enabled by default, so "only these" first disables the types that are not named.
  const char** types = nullptr;
  size_t count = 0;
  if (only && library_->get_event_types(&types, &count) == kNrtSuccess) {
    for (size_t i = 0; i < count; ++i) {
      if (!NamesEventType(spec, types[i])) {
        library_->config_set_enabled_for_event_type(config, types[i], false);
      }
    }
    FreeEventTypes(*library_, types, count);
  } else if (only) {
    start->unfiltered = true;
  }
  for (const char* name = NextName(spec, nullptr); name != nullptr; name = NextName(spec, name)) {
    if (library_->config_set_enabled_for_event_type(config, name, only) != kNrtSuccess) {
      ++start->unknown_names;
    }
  }
}

void RuntimeTrace::PrepareFetch(const CaptureSpec& spec) {
  slot_count_ = 0;
  uint32_t cores = 0;
  // Fetching core by core limits the size of a document; otherwise one fetch returns all cores.
  if (library_->CanFetchOneCore() && library_->get_visible_vnc_count(&cores) == kNrtSuccess) {
    for (uint32_t core = 0; core < cores && core < kTapMaxCores; ++core) {
      if (spec.Wants(core)) slot_core_[slot_count_++] = core;
    }
  }
  options_ = nullptr;
  if (library_->fetch_options_allocate != nullptr && library_->fetch_options_free != nullptr &&
      library_->fetch_options_allocate(&options_) != kNrtSuccess) {
    options_ = nullptr;
  }
  if (slot_count_ == 0 || options_ == nullptr) {
    slot_count_ = 1;
    slot_core_[0] = kTapNoCore;
  }
  // No document may take more than about a quarter of the shared ring. Twice the usual size of an
  // event leaves room for larger ones.
  events_per_fetch_ = ring_bytes_ / 4 / (kTypicalEventBytes * 2);
  if (slot_core_[0] == kTapNoCore && cores > 1) events_per_fetch_ /= cores;
  if (events_per_fetch_ > kEventsPerFetchMax) events_per_fetch_ = kEventsPerFetchMax;
  if (events_per_fetch_ < 16) events_per_fetch_ = 16;
  if (options_ != nullptr && library_->fetch_options_set_max_events_per_nc != nullptr) {
    library_->fetch_options_set_max_events_per_nc(options_, events_per_fetch_);
  }
  // An estimate until documents have been seen.
  largest_document_ = events_per_fetch_ * kTypicalEventBytes;
  schedule_.Begin(clock_->monotonic_ns(), slot_count_, spec.max_events_per_nc, events_per_fetch_);
}

void RuntimeTrace::WriteStarted(const CaptureSpec& spec, uint16_t flags) {
  TapTraceStarted started = {};
  started.max_events_per_nc = spec.max_events_per_nc;
  memcpy(started.nc_bitmap, spec.nc_bitmap, sizeof started.nc_bitmap);
  started.event_rule = static_cast<uint32_t>(spec.event_rule);
  started.name_count = spec.name_count;
  ring_->AppendControl(TapRecordType::kTraceStarted, flags, clock_->realtime_ns(), &started,
                       sizeof started, spec.names, spec.names_bytes);
}

uint64_t RuntimeTrace::ReservedBytes() const {
  // A fetch removes events from the runtime's ring, so it must be made only if its document will
  // fit: events that stay in the runtime's ring are not lost yet. Half of the ring at most, as
  // otherwise a single huge document would stop all fetches.
  uint64_t reserve = largest_document_ + largest_document_ / 4;
  if (reserve < kSmallestDocumentReserve) reserve = kSmallestDocumentReserve;
  return reserve < ring_bytes_ / 2 ? reserve : ring_bytes_ / 2;
}

RuntimeTrace::Fetched RuntimeTrace::Fetch(uint32_t slot, uint16_t flags, uint64_t* events) {
  const uint32_t core = slot_core_[slot];
  if (core != kTapNoCore) library_->fetch_options_set_nc_idx(options_, core);
  // The runtime refuses a pointer that is not null.
  char* json = nullptr;
  size_t size = 0;
  const uint64_t begin_ns = clock_->monotonic_ns();
  const NrtStatus status = library_->fetch_events(&json, &size, options_);
  Add(&counters_->fetches, 1);
  Add(&counters_->fetch_ns, clock_->monotonic_ns() - begin_ns);
  const bool failed = status != kNrtSuccess && status != kNrtQueueEmpty;
  *events = failed || json == nullptr ? 0 : EstimateEvents(json, size);
  // Half counts as full, because the number is an estimate.
  const bool full = *events * 2 >= events_per_fetch_;
  if (full) flags = static_cast<uint16_t>(flags | kTapRecordFlagMore);
  if (*events > 0) {
    if (size > largest_document_) largest_document_ = size;
    const uint64_t realtime_ns = clock_->realtime_ns();
    // The document was larger than expected. Its events are gone from the runtime, so they are
    // counted exactly.
    if (!ring_->AppendDocument(core, flags, realtime_ns, json, size)) {
      ring_->CountRefused(core, realtime_ns, ScanRefused(json, size));
    }
  }
  if (json != nullptr) library_->buffer_free(json);
  if (failed) {
    ring_->CountFailed(core, clock_->realtime_ns());
    ++errors_in_a_row_;
    last_error_ = status;
    return Fetched::kError;
  }
  errors_in_a_row_ = 0;
  if (*events == 0) Add(&counters_->empty_fetches, 1);
  return full ? Fetched::kFull : Fetched::kThin;
}

bool RuntimeTrace::DrainDue(const std::atomic<uint32_t>& interrupt) {
  const uint64_t begin_ns = clock_->monotonic_ns();
  const uint64_t begin_cpu_ns = clock_->thread_cpu_ns();
  // Forgets an unusually large document within some thousand rounds.
  largest_document_ -= largest_document_ / 1024;

  const uint32_t fetches_max = kFetchesPerCoreARound * slot_count_;
  uint64_t now_ns = begin_ns;
  for (uint32_t i = 0; i < fetches_max && now_ns - begin_ns < kRoundBudgetNs; ++i) {
    const uint32_t slot = schedule_.Next(now_ns);
    if (slot == DrainSchedule::kNoSlot) break;
    // The application waits for the runtime: it must not wait for more than one fetch.
    if (interrupt.load(std::memory_order_acquire) != 0) break;
    if (ring_->RoomForDocument() < ReservedBytes()) {
      // The agent is behind. The events stay in the runtime's ring as long as that has room.
      ring_->CountDeferred(slot_core_[slot], clock_->realtime_ns());
      schedule_.PutOff(slot, now_ns);
      continue;
    }
    uint64_t events = 0;
    const uint64_t fetched_ns = now_ns;
    const Fetched fetched = Fetch(slot, 0, &events);
    now_ns = clock_->monotonic_ns();
    if (fetched == Fetched::kError) {
      // Other errors may be temporary.
      const bool gone = last_error_ == kNrtUninitialized || last_error_ == kNrtClosed;
      if (gone || errors_in_a_row_ >= kFetchErrorsInARowMax) return false;
      schedule_.PutOff(slot, now_ns);
    } else {
      schedule_.Drained(slot, fetched_ns, now_ns, events, fetched == Fetched::kFull);
    }
  }
  Add(&counters_->drain_rounds, 1);
  Add(&counters_->drain_ns, clock_->thread_cpu_ns() - begin_cpu_ns);
  return true;
}

// Returns the next core that has not come back thin `rounds` times: in the first round the next in
// line, in the second the one with the lowest rate. While the last of many cores is drained the
// others continue to record. The fewest events arrive between a core's last fetch and the stop if
// the busiest core comes last.
uint32_t RuntimeTrace::NextOfRound(const uint8_t* thin, uint8_t rounds, uint32_t after) const {
  uint32_t next = DrainSchedule::kNoSlot;
  for (uint32_t i = 1; i <= slot_count_; ++i) {
    const uint32_t slot = (after + i) % slot_count_;
    if (thin[slot] >= rounds) continue;
    if (rounds == 1) return slot;
    if (next == DrainSchedule::kNoSlot ||
        schedule_.events_per_second(slot) < schedule_.events_per_second(next)) {
      next = slot;
    }
  }
  return next;
}

// Returns the core nearest to overwriting, if that is near or the core has not come back thin at
// all.
uint32_t RuntimeTrace::MostUrgent(const uint8_t* thin, uint64_t now_ns) const {
  uint32_t next = DrainSchedule::kNoSlot;
  uint64_t next_left_ns = kNeverNs;
  for (uint32_t slot = 0; slot < slot_count_; ++slot) {
    const uint64_t left_ns = schedule_.NsToOverwrite(slot, now_ns);
    if (left_ns >= next_left_ns || (thin[slot] > 0 && left_ns >= kFinalDrainUrgentNs)) continue;
    next = slot;
    next_left_ns = left_ns;
  }
  return next;
}

bool RuntimeTrace::DrainEveryCore() {
  uint64_t now_ns = clock_->monotonic_ns();
  const uint64_t deadline_ns = now_ns + kFinalDrainBudgetNs;
  // The round in which each core came back thin last.
  uint8_t thin[kTapMaxCores] = {};
  uint32_t last_in_line = slot_count_ - 1;
  errors_in_a_row_ = 0;
  uint8_t round = 1;
  // Every second fetch goes to the most urgent core; the others go in turn, so that each core gets
  // its share.
  for (bool by_urgency = true; round <= 2; by_urgency = !by_urgency) {
    uint32_t slot = NextOfRound(thin, round, last_in_line);
    if (slot == DrainSchedule::kNoSlot) {
      ++round;
      continue;
    }
    if (now_ns >= deadline_ns) break;
    const uint32_t urgent = by_urgency ? MostUrgent(thin, now_ns) : DrainSchedule::kNoSlot;
    if (urgent == DrainSchedule::kNoSlot) {
      last_in_line = slot;
    } else {
      slot = urgent;
    }
    uint64_t events = 0;
    const uint64_t fetched_ns = now_ns;
    const Fetched fetched = Fetch(slot, kTapRecordFlagFinalDrain, &events);
    if (fetched == Fetched::kError) return false;
    now_ns = clock_->monotonic_ns();
    if (fetched == Fetched::kThin) thin[slot] = round;
    schedule_.Drained(slot, fetched_ns, now_ns, events, fetched == Fetched::kFull);
  }
  // The first round decides: the second only brings the ends of the cores closer together.
  return round > 1;
}

void RuntimeTrace::WriteStopped(TapTraceStopped stopped, uint64_t documents_at_start,
                                uint64_t refused_at_start) {
  stopped.documents = ring_->documents() - documents_at_start;
  stopped.refused_documents = ring_->refused_documents() - refused_at_start;
  const uint64_t realtime_ns = clock_->realtime_ns();
  // Before TRACE_STOPPED: a reader closes its account there.
  ring_->FlushLosses(realtime_ns);
  ring_->AppendControl(TapRecordType::kTraceStopped, 0, realtime_ns, &stopped, sizeof stopped);
}

void RuntimeTrace::End(TapStopReason reason, bool call_stop) {
  if (!running_) return;
  TapTraceStopped stopped = {};
  stopped.reason = static_cast<uint32_t>(reason);
  // A trace that another caller ended has nothing to fetch; events that are there may belong to
  // that caller.
  if (reason != TapStopReason::kFetchFailed) {
    stopped.final_drain_complete = (holds_ && !collecting_) || DrainEveryCore() ? 1 : 0;
  }
  if (options_ != nullptr) library_->fetch_options_free(options_);
  options_ = nullptr;
  if (call_stop) stopped.nrt_status = library_->trace_stop();
  running_ = false;
  if (collecting_) {
    collected_all_ = stopped.final_drain_complete != 0;
    EndCollection(reason);
  }
  WriteStopped(stopped, documents_at_start_, refused_at_start_);
  ring_->SetCapture(nullptr);
}

// --- Collecting from rings that were held --------------------------------------------------------

void RuntimeTrace::BeginCollection(const CaptureSpec& spec, const uint8_t* capture_id) {
  if (!holds() || collecting_) return;
  const uint64_t now_ns = clock_->monotonic_ns();
  collecting_ = true;
  collected_all_ = false;
  collect_begun_ns_ = collect_due_ns_ = now_ns;
  collect_last_ = slot_count_ - 1;
  // How many events a document has is an estimate, and events recorded meanwhile come last: an
  // eighth is added to the ring's capacity.
  const uint64_t cores = slot_core_[0] == kTapNoCore ? kTapMaxCores : 1;
  for (uint32_t slot = 0; slot < slot_count_; ++slot) {
    collect_left_[slot] = (ring_events_ + ring_events_ / 8) * cores;
  }
  errors_in_a_row_ = 0;
  // Only for its rates, which are unknown while rings are held.
  schedule_.Begin(now_ns, slot_count_, ring_events_, events_per_fetch_);
  ring_->SetCapture(capture_id);
  collect_documents_at_start_ = ring_->documents();
  collect_refused_at_start_ = ring_->refused_documents();
  WriteStarted(spec, kTapRecordFlagCollected);
}

uint32_t RuntimeTrace::NextToCollect() const {
  for (uint32_t i = 1; i <= slot_count_; ++i) {
    const uint32_t slot = (collect_last_ + i) % slot_count_;
    if (collect_left_[slot] > 0) return slot;
  }
  return DrainSchedule::kNoSlot;
}

RuntimeTrace::Collected RuntimeTrace::Collect(const std::atomic<uint32_t>& interrupt) {
  const uint64_t begin_ns = clock_->monotonic_ns();
  uint64_t now_ns = begin_ns;
  while (now_ns - begin_ns < kRoundBudgetNs) {
    const uint32_t slot = NextToCollect();
    collected_all_ = slot == DrainSchedule::kNoSlot;
    if (collected_all_ || now_ns - collect_begun_ns_ >= kCollectBudgetNs) return Collected::kDone;
    if (interrupt.load(std::memory_order_acquire) != 0) return Collected::kMore;
    if (ring_->RoomForDocument() < ReservedBytes()) {
      ring_->CountDeferred(slot_core_[slot], clock_->realtime_ns());
      collect_due_ns_ = now_ns + kCollectPauseNs;
      return Collected::kMore;
    }
    uint64_t events = 0;
    const Fetched fetched = Fetch(slot, 0, &events);
    collect_last_ = slot;
    now_ns = clock_->monotonic_ns();
    collect_due_ns_ = now_ns;
    if (fetched == Fetched::kError) {
      const bool gone = last_error_ == kNrtUninitialized || last_error_ == kNrtClosed;
      if (gone || errors_in_a_row_ >= kFetchErrorsInARowMax) return Collected::kGone;
      collect_due_ns_ = now_ns + kCollectPauseNs;
      return Collected::kMore;
    }
    const bool done = fetched == Fetched::kThin || events >= collect_left_[slot];
    // A core that records faster than it is fetched would otherwise never be done: after as many
    // events as its ring can hold, all that it held at the beginning has been fetched.
    collect_left_[slot] = done ? 0 : collect_left_[slot] - events;
  }
  return Collected::kMore;
}

void RuntimeTrace::EndCollection(TapStopReason reason) {
  if (!collecting_) return;
  collecting_ = false;
  TapTraceStopped stopped = {};
  stopped.reason = static_cast<uint32_t>(reason);
  stopped.final_drain_complete = collected_all_ ? 1 : 0;
  WriteStopped(stopped, collect_documents_at_start_, collect_refused_at_start_);
  ring_->SetCapture(capture_id_);
}

}  // namespace neurontrace::tap
