// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/utc_sources.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/status/status.h"

namespace neurontrace {
namespace {

// How many questions there are between searches for a network card that was not found, or does not
// answer (5 minutes).
constexpr int kAsksPerSearch = 60;

}  // namespace

UtcSources::UtcSources(const Deps& deps, UtcPaths paths, ClockEvidence& out)
    : deps_(deps),
      paths_(std::move(paths)),
      out_(out),
      chrony_(paths_.chrony, deps.runner, deps.random,
              [this](const ChronyTracking& tracking) { OnChrony(tracking); }) {}

void UtcSources::Ask(std::optional<uint64_t> disruption_marker) {
  QueryPhc();
  QueryClockBound(disruption_marker);
  chrony_.Ask();
  ++asks_;
}

void UtcSources::Take(const std::optional<UtcReading>& reading, uint64_t& counter) {
  if (!reading) {
    ++counters_.refused;
    return;
  }
  ++counter;
  out_.utc.push_back(*reading);
}

// The search lists a directory and opens files, so it is repeated rarely; a reading is one ioctl.
void UtcSources::QueryPhc() {
  if (!phc_answers_ && asks_ % kAsksPerSearch == 0) {
    phc_.reset();
    auto phc = PhcReader::Open(deps_.files, paths_.phc);
    if (phc.ok()) {
      spdlog::info("clock: UTC from {}", phc->name());
      phc_ = *std::move(phc);
    }
  }
  if (!phc_) return;
  const auto reading = phc_->Read(deps_.clocks);
  phc_answers_ = reading.ok();
  Take(reading.ok() ? std::optional(*reading) : std::nullopt, counters_.phc);
}

void UtcSources::QueryClockBound(std::optional<uint64_t> disruption_marker) {
  const auto promise = ClockBoundMemory::Read(deps_.files, paths_.clock_bound);
  // The normal case on most machines, so it is not counted as refused.
  if (absl::IsNotFound(promise.status())) return;
  if (!promise.ok()) {
    ++counters_.refused;
    return;
  }
  const ClockSnapshot now = ReadHostClocks(deps_.clocks);
  Take(ClockBoundMemory::Utc(*promise, now, disruption_marker), counters_.clock_bound);
}

void UtcSources::OnChrony(const ChronyTracking& tracking) {
  Take(UtcFromChrony(tracking, ReadHostClocks(deps_.clocks)), counters_.chrony);
}

}  // namespace neurontrace
