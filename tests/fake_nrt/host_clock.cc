// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/host_clock.h"

#include <algorithm>
#include <charconv>

namespace neurontrace {
namespace {

int64_t Gained(double ppm, int64_t ns) {
  return static_cast<int64_t>(ppm * 1e-6 * static_cast<double>(ns));
}

template <typename Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Cuts what precedes `mark`, or everything, off the front of `text`.
std::string_view CutOff(std::string_view& text, char mark) {
  const std::string_view front = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(text.size(), front.size() + 1));
  return front;
}

bool ParseStep(std::string_view text, HostClock& clock) {
  HostClock::Step step;
  const bool good = ParseNumber(CutOff(text, ':'), step.at_ns) && ParseNumber(text, step.by_ns);
  if (good) clock.steps.push_back(step);
  return good;
}

bool ParseSlew(std::string_view text, bool is_hidden, HostClock& clock) {
  HostClock::Slew slew{.is_hidden = is_hidden};
  const bool good = ParseNumber(CutOff(text, ':'), slew.begin_ns) &&
                    ParseNumber(CutOff(text, ':'), slew.end_ns) && ParseNumber(text, slew.ppm);
  if (good) clock.slews.push_back(slew);
  return good;
}

bool ParseWord(std::string_view name, std::string_view value, HostClock& clock) {
  if (name == "offset_ns") return ParseNumber(value, clock.offset_ns);
  if (name == "drift_ppm") return ParseNumber(value, clock.drift_ppm);
  if (name == "origin_ns") return ParseNumber(value, clock.origin_ns);
  if (name == "raw_offset_ns") return ParseNumber(value, clock.raw_offset_ns);
  if (name == "raw_drift_ppm") return ParseNumber(value, clock.raw_drift_ppm);
  if (name == "step") return ParseStep(value, clock);
  if (name == "slew") return ParseSlew(value, false, clock);
  return name == "hidden_slew" && ParseSlew(value, true, clock);
}

}  // namespace

int64_t HostClock::Stamp(int64_t true_ns) const {
  int64_t stamp_ns = true_ns + offset_ns + GainedNs(true_ns);
  for (const Step& step : steps) {
    if (true_ns >= step.at_ns) stamp_ns += step.by_ns;
  }
  return stamp_ns;
}

int64_t HostClock::GainedNs(int64_t true_ns) const {
  int64_t gained_ns = Gained(drift_ppm, true_ns - origin_ns);
  for (const Slew& slew : slews) {
    if (true_ns < slew.begin_ns) break;
    gained_ns += Gained(slew.ppm, std::min(true_ns, slew.end_ns) - slew.begin_ns);
  }
  return gained_ns;
}

int64_t HostClock::RawGainedNs(int64_t true_ns) const {
  return Gained(raw_drift_ppm, true_ns - origin_ns);
}

double HostClock::ShownPpm(int64_t true_ns) const {
  double ppm = drift_ppm;
  for (const Slew& slew : slews) {
    if (!slew.is_hidden && true_ns >= slew.begin_ns && true_ns < slew.end_ns) ppm += slew.ppm;
  }
  return ((1 + ppm * 1e-6) / (1 + raw_drift_ppm * 1e-6) - 1) * 1e6;
}

std::optional<int64_t> HostClock::NextStepAfter(int64_t true_ns) const {
  for (const Step& step : steps) {
    if (step.at_ns > true_ns) return step.at_ns;
  }
  return std::nullopt;
}

std::optional<HostClock> HostClock::Parse(std::string_view text) {
  HostClock clock;
  while (!text.empty()) {
    std::string_view value = CutOff(text, ' ');
    if (value.empty()) continue;
    const std::string_view name = CutOff(value, '=');
    if (!ParseWord(name, value, clock)) return std::nullopt;
  }
  return clock;
}

}  // namespace neurontrace
