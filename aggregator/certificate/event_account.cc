// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/event_account.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/time_units.h"
#include "lib/trace/expiry.h"

namespace neurontrace {
namespace {

// What is lost before a chunk is made was never captured; LossPlace is ordered along the way of
// events.
bool IsBeforeCapture(LossPlace place) { return place < LossPlace::kAgentQueue; }

// Fewer accounted events than captured ones can be explained by an uncounted loss on the way. More
// of them never can: some event would have been counted twice.
Conservation Check(uint64_t captured, uint64_t accounted, bool unknown_in_transit, bool unknown) {
  if (captured == accounted) return unknown ? Conservation::kUndetermined : Conservation::kYes;
  const bool is_explained = captured > accounted && unknown_in_transit;
  return is_explained ? Conservation::kUndetermined : Conservation::kNo;
}

}  // namespace

// Sums over streams and workers must not wrap, as hostile agents choose the numbers.
void EventAccount::Add(const EventAccount& more) {
  expected = AddSaturating(expected, more.expected);
  captured = AddSaturating(captured, more.captured);
  stored = AddSaturating(stored, more.stored);
  lost = AddSaturating(lost, more.lost);
  expired = AddSaturating(expired, more.expired);
  expired_last_ns = std::max(expired_last_ns, more.expired_last_ns);
  lost_unknown = lost_unknown || more.lost_unknown;
  for (const Loss& loss : more.losses) AddLoss(loss, losses);
  if (conserved == Conservation::kNo || more.conserved == Conservation::kNo) {
    conserved = Conservation::kNo;
  } else if (more.conserved == Conservation::kUndetermined) {
    conserved = Conservation::kUndetermined;
  }
}

EventAccount AccountOf(const StreamRecord& stream) {
  EventAccount account;
  // The agent counts `captured` itself, independently of the events that arrive: that makes the
  // comparison below a check at all.
  account.captured = account.expected = stream.captured;
  account.stored = stream.events;
  uint64_t accounted = stream.events;
  bool unknown_in_transit = false;
  for (const Loss& loss : stream.losses) {
    // One of no events gives only the time and the text of what is counted elsewhere.
    if (loss.events == 0 && !loss.events_unknown) continue;
    AddLoss(loss, account.losses);
    // Expired events were stored: they balance the account, but are not lost.
    if (IsExpiry(loss)) {
      account.expired = AddSaturating(account.expired, loss.events);
      accounted = AddSaturating(accounted, loss.events);
      account.expired_last_ns = std::max(account.expired_last_ns, loss.last_timestamp_ns);
      continue;
    }
    account.lost = AddSaturating(account.lost, loss.events);
    account.lost_unknown = account.lost_unknown || loss.events_unknown;
    if (IsBeforeCapture(loss.place)) {
      account.expected = AddSaturating(account.expected, loss.events);
    } else {
      accounted = AddSaturating(accounted, loss.events);
      unknown_in_transit = unknown_in_transit || loss.events_unknown;
    }
  }
  account.conserved = Check(account.captured, accounted, unknown_in_transit, account.lost_unknown);
  return account;
}

// The limit in the decoder drops what no chunk can hold after it was read; other losses before a
// chunk are not read events.
uint64_t EventsReadBy(const StreamRecord& stream) {
  uint64_t read = stream.captured;
  for (const Loss& loss : stream.losses) {
    if (loss.place == LossPlace::kDecode && loss.reason == LossReason::kLimit) {
      read = AddSaturating(read, loss.events);
    }
  }
  return read;
}

std::string DescribeLosses(const std::vector<Loss>& losses) {
  std::string text;
  for (const Loss& loss : losses) {
    if (IsExpiry(loss)) continue;
    if (!text.empty()) text += ", ";
    if (loss.events > 0) text += fmt::format("{}", loss.events);
    if (loss.events_unknown) text += loss.events > 0 ? " and more" : "an unknown number";
    if (loss.place == LossPlace::kUnspecified) {
      text += " at an unknown place";
    } else {
      text += fmt::format(" in the {} ({})", ToString(loss.place), ToString(loss.reason));
    }
  }
  return text;
}

}  // namespace neurontrace
