// SPDX-License-Identifier: Apache-2.0
#include "tap/runtime_trace.h"

#include <stdlib.h>
#include <string.h>

namespace neurontrace {

namespace {

constexpr uint64_t kUsualEventBytes = 350;
constexpr uint64_t kSampleBytes = 8 * 1024;
constexpr uint64_t kSmallestDocumentReserve = 64 * 1024;
// The vendor's own examples switch cores 0 to 127 off before they switch some on.
constexpr uint32_t kCoresToDisableMin = 128;

void Add(std::atomic<uint64_t>* counter, uint64_t by) {
  counter->store(counter->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// An empty envelope is a few dozen bytes; no event is that small.
bool HoldsNoEvent(uint64_t json_bytes) { return json_bytes < 64; }

}  // namespace

uint64_t EstimateEvents(const char* json, uint64_t json_bytes) {
  if (HoldsNoEvent(json_bytes)) return 0;
  static constexpr char kKey[] = "\"event_type\"";
  const uint64_t sample = json_bytes < kSampleBytes ? json_bytes : kSampleBytes;
  const char* const end = json + sample;
  uint64_t found = 0;
  const char* first = nullptr;
  const char* last = json;
  for (const char* at = json; at < end; at += sizeof kKey - 1) {
    at = static_cast<const char*>(memmem(at, static_cast<size_t>(end - at), kKey, sizeof kKey - 1));
    if (at == nullptr) break;
    if (first == nullptr) first = at;
    last = at;
    ++found;
  }
  if (sample == json_bytes) return found > 0 ? found : 1;
  const uint64_t per_event =
      found >= 2 ? static_cast<uint64_t>(last - first) / (found - 1) : kUsualEventBytes;
  return json_bytes / per_event + 1;
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
  errors_in_a_row_ = 0;
  last_error_ = kNrtSuccess;
  PrepareFetch(spec);
  ring_->SetCapture(spec.capture_id);
  documents_at_start_ = ring_->documents();
  refused_at_start_ = ring_->refused_documents();
  WriteStarted(spec, resumed);
  return start;
}

NrtStatus RuntimeTrace::Configure(const CaptureSpec& spec, NrtTraceConfig* config, Start* start) {
  // Without a bound the runtime takes over a hundred megabytes a core: refuse rather than risk it.
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
  // Everything is enabled by default, so "only these" first disables what is not named.
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
  first_slot_ = 0;
  uint32_t cores = 0;
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
  // No document may take more than about a quarter of the shared ring.
  events_per_fetch_ = ring_bytes_ / 4 / (kUsualEventBytes * 2);
  if (slot_core_[0] == kTapNoCore && cores > 1) events_per_fetch_ /= cores;
  if (events_per_fetch_ > kEventsPerFetchMax) events_per_fetch_ = kEventsPerFetchMax;
  if (events_per_fetch_ < 16) events_per_fetch_ = 16;
  if (options_ != nullptr && library_->fetch_options_set_max_events_per_nc != nullptr) {
    library_->fetch_options_set_max_events_per_nc(options_, events_per_fetch_);
  }
  largest_document_ = events_per_fetch_ * kUsualEventBytes;
  schedule_.Begin(clock_->monotonic_ns(), slot_count_, spec.max_events_per_nc);
}

void RuntimeTrace::WriteStarted(const CaptureSpec& spec, bool resumed) {
  TapTraceStarted started = {};
  started.max_events_per_nc = spec.max_events_per_nc;
  memcpy(started.nc_bitmap, spec.nc_bitmap, sizeof started.nc_bitmap);
  started.event_rule = static_cast<uint32_t>(spec.event_rule);
  started.name_count = spec.name_count;
  ring_->AppendControl(TapRecordType::kTraceStarted, resumed ? kTapRecordFlagResumed : 0,
                       clock_->realtime_ns(), &started, sizeof started, spec.names,
                       spec.names_bytes);
}

uint64_t RuntimeTrace::ReservedBytes() const {
  uint64_t reserve = largest_document_ + largest_document_ / 4;
  if (reserve < kSmallestDocumentReserve) reserve = kSmallestDocumentReserve;
  return reserve < ring_bytes_ / 2 ? reserve : ring_bytes_ / 2;
}

RuntimeTrace::Fetched RuntimeTrace::Fetch(uint32_t slot, uint16_t flags, uint64_t* events) {
  const uint32_t core = slot_core_[slot];
  if (core != kTapNoCore) library_->fetch_options_set_nc_idx(options_, core);
  char* json = nullptr;  // the runtime refuses anything else
  size_t size = 0;
  const uint64_t begin_ns = clock_->monotonic_ns();
  const NrtStatus status = library_->fetch_events(&json, &size, options_);
  Add(&counters_->fetches, 1);
  Add(&counters_->fetch_ns, clock_->monotonic_ns() - begin_ns);
  const bool failed = status != kNrtSuccess && status != kNrtQueueEmpty;
  *events = failed || json == nullptr ? 0 : EstimateEvents(json, size);
  if (*events > 0) {
    if (size > largest_document_) largest_document_ = size;
    if (ring_->AppendDocument(core, flags, clock_->realtime_ns(), json, size, *events)) {
      ring_->FlushLoss(clock_->realtime_ns());
    }
  }
  if (json != nullptr) library_->buffer_free(json);
  if (failed) {
    Add(&counters_->fetch_errors, 1);
    ++errors_in_a_row_;
    last_error_ = status;
    return Fetched::kError;
  }
  errors_in_a_row_ = 0;
  if (*events == 0) Add(&counters_->empty_fetches, 1);
  return *events * 2 >= events_per_fetch_ ? Fetched::kFull : Fetched::kThin;
}

bool RuntimeTrace::DrainDue(const std::atomic<uint32_t>& interrupt) {
  const uint64_t begin_ns = clock_->monotonic_ns();
  uint64_t events_of_slot[kTapMaxCores] = {};
  bool pending[kTapMaxCores];
  for (uint32_t i = 0; i < slot_count_; ++i) pending[i] = schedule_.IsDue(i, begin_ns);
  largest_document_ -= largest_document_ / 1024;

  bool again = true;
  for (uint32_t pass = 0; again && pass < kFetchesPerCoreARound; ++pass) {
    again = false;
    for (uint32_t i = 0; i < slot_count_; ++i) {
      const uint32_t slot = (first_slot_ + i) % slot_count_;
      if (!pending[slot]) continue;
      if (interrupt.load(std::memory_order_acquire) != 0) return true;
      if (ring_->RoomForDocument() < ReservedBytes()) {
        ring_->CountDeferred(clock_->realtime_ns());
        schedule_.PutOff(slot, clock_->monotonic_ns());
        pending[slot] = false;
        continue;
      }
      uint64_t events = 0;
      const Fetched fetched = Fetch(slot, 0, &events);
      if (fetched == Fetched::kError && errors_in_a_row_ >= kFetchErrorsInARowMax) return false;
      if (last_error_ == kNrtUninitialized || last_error_ == kNrtClosed) return false;
      events_of_slot[slot] += events;
      pending[slot] = fetched == Fetched::kFull;
      again = again || pending[slot];
      schedule_.Drained(slot, clock_->monotonic_ns(), events_of_slot[slot], events_per_fetch_);
    }
  }
  first_slot_ = (first_slot_ + 1) % slot_count_;
  Add(&counters_->drain_rounds, 1);
  Add(&counters_->drain_ns, clock_->monotonic_ns() - begin_ns);
  return true;
}

bool RuntimeTrace::DrainEveryCore() {
  const uint64_t deadline_ns = clock_->monotonic_ns() + kFinalDrainBudgetNs;
  bool pending[kTapMaxCores];
  for (uint32_t i = 0; i < slot_count_; ++i) pending[i] = true;
  errors_in_a_row_ = 0;
  for (bool again = true; again;) {
    again = false;
    for (uint32_t slot = 0; slot < slot_count_; ++slot) {
      if (!pending[slot]) continue;
      if (clock_->monotonic_ns() >= deadline_ns) return false;
      uint64_t events = 0;
      const Fetched fetched = Fetch(slot, kTapRecordFlagFinalDrain, &events);
      if (fetched == Fetched::kError) return false;
      pending[slot] = fetched == Fetched::kFull;
      again = again || pending[slot];
    }
  }
  return true;
}

void RuntimeTrace::End(TapStopReason reason, bool call_stop) {
  if (!running_) return;
  TapTraceStopped stopped = {};
  stopped.reason = static_cast<uint32_t>(reason);
  // A trace that somebody else ended has nothing to fetch; what there is may be theirs.
  if (reason != TapStopReason::kFetchFailed) {
    stopped.final_drain_complete = DrainEveryCore() ? 1 : 0;
  }
  if (options_ != nullptr) library_->fetch_options_free(options_);
  options_ = nullptr;
  if (call_stop) stopped.nrt_status = library_->trace_stop();
  running_ = false;
  stopped.documents = ring_->documents() - documents_at_start_;
  stopped.refused_documents = ring_->refused_documents() - refused_at_start_;
  const uint64_t realtime_ns = clock_->realtime_ns();
  ring_->FlushLoss(realtime_ns);
  ring_->AppendControl(TapRecordType::kTraceStopped, 0, realtime_ns, &stopped, sizeof stopped);
  ring_->SetCapture(nullptr);
}

}  // namespace neurontrace
