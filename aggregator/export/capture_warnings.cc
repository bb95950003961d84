// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/capture_warnings.h"

#include <fmt/format.h>

#include <ctime>

#include "lib/trace/fidelity.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

// Returns the number of lost events as a text that begins a sentence; `events` is a lower bound if
// `is_unknown`, as an uncounted loss must never read as 0.
std::string LostText(uint64_t events, bool is_unknown) {
  if (!is_unknown) return fmt::format("{}", events);
  return events == 0 ? "An unknown number of" : fmt::format("{} or more", events);
}

// Returns whether everything lost existed but could not be read, as in a damaged file. Then advice
// about buffers would mislead.
bool IsAllUnreadable(const TimelineHeader& header) {
  bool any = false;
  for (const TimelineStream& stream : header.streams) {
    for (const Loss& loss : stream.description.losses) {
      if (IsLeftOut(loss)) continue;
      if (loss.place != LossPlace::kDecode) return false;
      any = true;
    }
  }
  return any;
}

// Returns the vendor's own sentence with our numbers, if its advice can help.
std::string DroppedText(const EventAccount& account, bool is_all_unreadable) {
  const std::string lost = LostText(account.lost, account.lost_unknown);
  const std::string stored = fmt::format("stored {} out of {}{} total events", account.stored,
                                         account.lost_unknown ? "at least " : "", account.expected);
  if (is_all_unreadable)
    return fmt::format("{} trace events could not be read ({}).", lost, stored);
  return fmt::format(
      "{} trace events were dropped during capture ({}). Consider increasing buffer size, reducing "
      "trace duration, or filtering events.",
      lost, stored);
}

}  // namespace

void ForEachWarning(
    const TimelineHeader& header, const std::vector<std::string>& warnings,
    const std::function<void(std::string_view message, std::string_view category)>& add) {
  if (header.certificate != nullptr) {
    const EventAccount& account = header.certificate->account;
    if (!account.whole()) add(DroppedText(account, IsAllUnreadable(header)), "Missing Data");
    // The sum over all streams precedes the single losses below, because readers may look at the
    // first warnings only. The verdict is written even if it is good: a reader of the file alone
    // should know that nothing is missing.
    add(header.certificate->verdict, "Capture");
    for (const std::string& finding : header.certificate->findings) add(finding, "Missing Data");
  }
  for (const std::string& warning : warnings) add(warning, "Capture");
  // Suspensions and losses share one limit, and are listed stream by stream.
  size_t losses = 0;
  for (const TimelineStream& stream : header.streams) {
    for (const Suspension& suspension : stream.description.suspensions) {
      if (suspension.length_ns() == 0) continue;
      if (++losses > kLossWarningsMax) continue;
      add(fmt::format("{} did not record from {} to {}: {}",
                      ToString(stream.description.identity.worker),
                      VendorTimeText(suspension.begin_ns), VendorTimeText(suspension.end_ns),
                      Describe(suspension)),
          "Capture");
    }
    for (const Loss& loss : stream.description.losses) {
      // The capture's budget left these out, and events in the stream itself show that.
      if (IsLeftOut(loss)) continue;
      if (++losses > kLossWarningsMax) continue;
      add(fmt::format("{} trace events of {} were lost ({}, {}){}{}",
                      LostText(loss.events, loss.events_unknown),
                      ToString(stream.description.identity), ToString(loss.place),
                      ToString(loss.reason), loss.detail.empty() ? "" : ": ", loss.detail),
          "Missing Data");
    }
  }
  if (losses > kLossWarningsMax) {
    add(fmt::format("{} further losses are not listed", losses - kLossWarningsMax), "Missing Data");
  }
}

std::optional<std::string> WindowWarning(const TimelineReader& reader, uint64_t lookback_ns) {
  if (!reader.has_unseen_past()) return std::nullopt;
  return fmt::format(
      "spans that began more than {} s before the time window are shown only if they end in it, "
      "and without their start; start the window earlier to show them completely",
      static_cast<double>(lookback_ns) * 1e-9);
}

// gmtime_r instead of a library for time zones: the vendor writes UTC only. Every value of 64 bits
// of nanoseconds is a year below 2555, so that gmtime_r cannot fail.
std::string VendorTimeText(uint64_t epoch_ns) {
  const auto seconds = static_cast<time_t>(epoch_ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:09} +0000 UTC", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     epoch_ns % 1'000'000'000);
}

}  // namespace neurontrace
