// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/relative_window.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/align/core/clock_maps.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/expiry.h"
#include "lib/trace/suspension.h"

namespace neurontrace {

// A map leads from raw to reference time; its inverse gives what the host's clock shows now.
NowOfHosts HostsNow(const std::vector<StreamRecord>& streams, const ClockMaps& maps,
                    uint64_t reference_ns, uint64_t realtime_ns) {
  NowOfHosts now{.earliest_ns = UINT64_MAX, .latest_ns = 0};
  for (const StreamRecord& stream : streams) {
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    const ClockMap& map = maps.For(stream.identity.worker, ClockDomain::kHostRealtime);
    // An identity map says nothing of the host's clock; the aggregator's is the best guess.
    const uint64_t now_ns = map.is_identity() ? realtime_ns : map.ToRaw(reference_ns);
    now.earliest_ns = std::min(now.earliest_ns, now_ns);
    now.latest_ns = std::max(now.latest_ns, now_ns);
  }
  return now.latest_ns == 0 ? NowOfHosts{realtime_ns, realtime_ns} : now;
}

absl::Status ResolveBeforeNow(const NowOfHosts& now, v1::ExportRequest& request) {
  if (!request.window_is_before_now()) return absl::OkStatus();
  const uint64_t start_ns = request.window_start_ns();
  const uint64_t end_ns = request.window_end_ns();
  if (start_ns != 0 && start_ns <= end_ns) {
    return InvalidArgument(
        "window_start_ns, {} ns before now, must be before window_end_ns, {} ns before now",
        start_ns, end_ns);
  }
  if (end_ns >= now.latest_ns) return InvalidArgument("window_end_ns is before 1970");
  // Rather too much than too little: from the earliest clock to the latest.
  request.set_window_start_ns(start_ns == 0 ? 0 : SubtractSaturating(now.earliest_ns, start_ns));
  request.set_window_end_ns(now.latest_ns - end_ns);
  request.set_window_start_is_relative(false);
  request.set_window_end_is_relative(false);
  request.set_window_is_before_now(false);
  return absl::OkStatus();
}

uint64_t KnownUntil::ReferenceNs(const StreamRecord& stream, uint64_t raw_ns) const {
  return maps_.For(stream.identity.worker, ClockDomain::kHostRealtime).ToReference(raw_ns);
}

// For each stream: first what it lacks by intention, then how far it is known.
bool KnownUntil::Observe(const std::vector<StreamRecord>& streams) {
  streams_ = 0;
  short_.clear();
  suspended_.clear();
  bool is_known = true;
  for (const StreamRecord& stream : streams) {
    // No window shows the events of a stream with its own time.
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    for (const Suspension& suspension : stream.suspensions) {
      if (suspension.length_ns() == 0) continue;
      suspended_.push_back({ToString(stream.identity.worker),
                            ReferenceNs(stream, suspension.begin_ns),
                            ReferenceNs(stream, suspension.end_ns), Describe(suspension)});
    }
    for (const Loss& loss : stream.losses) {
      if (!IsExpiry(loss)) continue;
      expired_until_ns_ = std::max(expired_until_ns_, ReferenceNs(stream, loss.last_timestamp_ns));
    }
    // Samples of hosts arrive in chunks of seconds, and nobody waits for them.
    if (stream.ended || stream.identity.kind == StreamKind::kHost) continue;
    ++streams_;
    // Whatever was recorded before a canary was sent arrived before it, so that a canary proves how
    // far an idle stream is known.
    const uint64_t known_raw_ns = std::max(stream.last_timestamp_ns, stream.canary_realtime_ns);
    const uint64_t known_ns = known_raw_ns == 0 ? 0 : ReferenceNs(stream, known_raw_ns);
    if (known_ns >= end_ns_) continue;
    const uint64_t missing_ns = end_ns_ - known_ns;
    const bool quiet = missing_ns > kQuietNs;
    // A stream that is short of the end but quiet may simply have no events.
    is_known = is_known && quiet;
    short_.push_back({ToString(stream.identity), missing_ns, quiet});
  }
  return is_known;
}

// The streams that lack the most are named first.
std::vector<std::string> KnownUntil::Notes(uint64_t start_ns) const {
  std::vector<std::string> notes;
  if (streams_ > 0 && short_.empty()) {
    notes.push_back(fmt::format("all {} streams are known to the end of the window", streams_));
  }
  if (!short_.empty()) {
    std::vector<Short> worst = short_;
    std::ranges::sort(worst, std::greater<>(), &Short::missing_ns);
    std::string text = fmt::format("{} of {} streams are known to the end of the window",
                                   streams_ - short_.size(), streams_);
    for (size_t i = 0; i < std::min(worst.size(), kNamedMax); ++i) {
      text += fmt::format("; {} until {} before it{}", worst[i].name,
                          FormatSeconds(worst[i].missing_ns),
                          worst[i].quiet ? " (nothing received since)" : "");
    }
    if (worst.size() > kNamedMax) {
      text += fmt::format("; {} more until at least {} before it", worst.size() - kNamedMax,
                          FormatSeconds(worst[kNamedMax].missing_ns));
    }
    notes.push_back(std::move(text));
  }
  // A window without a start begins with the oldest stored event, wherever that is.
  if (start_ns != 0 && expired_until_ns_ > start_ns) {
    notes.push_back(
        fmt::format("the window starts before the oldest stored events: events up to {} after its "
                    "start have expired",
                    FormatSeconds(expired_until_ns_ - start_ns)));
  }
  if (std::string note = SuspensionNote(start_ns); !note.empty()) notes.push_back(std::move(note));
  return notes;
}

// Times are distances before the window's end.
std::string KnownUntil::SuspensionNote(uint64_t start_ns) const {
  std::string text;
  size_t count = 0;
  for (const SuspendedWorker& worker : suspended_) {
    if (worker.end_ns <= start_ns || worker.begin_ns >= end_ns_) continue;
    if (++count > kNamedMax) continue;
    const uint64_t to_ns = std::min(worker.end_ns, end_ns_);
    text += fmt::format("{}{} did not record from {} to {} before the window's end: {}",
                        count == 1 ? "" : "; ", worker.name,
                        FormatSeconds(end_ns_ - std::max(worker.begin_ns, start_ns)),
                        FormatSeconds(end_ns_ - to_ns), worker.description);
  }
  if (count > kNamedMax) text += fmt::format("; and {} more", count - kNamedMax);
  return text;
}

}  // namespace neurontrace
