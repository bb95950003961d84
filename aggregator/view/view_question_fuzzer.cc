// SPDX-License-Identifier: Apache-2.0
// Any text as the query of a question of the page, and what it finds as a search: what is accepted
// is within the limits, what is refused says why, and no event is found on a stream that the search
// rules out beforehand.
#include <cstdint>
#include <string>
#include <string_view>

#include "aggregator/view/event_query.h"
#include "aggregator/view/view_request.h"
#include "lib/base/fuzz_input.h"

namespace {

using neurontrace::CheckPromise;
using neurontrace::EventQuery;
using neurontrace::ViewRequest;
namespace limits = neurontrace::limits;

void CheckRefusal(const absl::Status& status) {
  CheckPromise(status.code() == absl::StatusCode::kInvalidArgument,
               "a refusal is a wrong question");
  CheckPromise(!status.message().empty(), "a refusal says why");
}

void CheckRequest(const ViewRequest& request) {
  CheckPromise(request.pixels >= 1 && request.pixels <= limits::kViewPixelsMax, "px");
  CheckPromise(request.columns >= 1 && request.columns <= limits::kViewColumnsMax, "columns");
  CheckPromise(request.limit >= 1 && request.limit <= limits::kViewHitsMax, "limit");
  CheckPromise(request.streams.size() <= limits::kViewStreamsMax, "streams");
  CheckPromise(request.from_ns.value_or(0) < INT64_MAX, "from");
  CheckPromise(request.to_ns.value_or(1) <= INT64_MAX && request.to_ns.value_or(1) > 0, "to");
}

void CheckSearch(std::string_view text) {
  const auto query = EventQuery::Parse(text);
  if (!query.ok()) return CheckRefusal(query.status());
  CheckPromise(text.size() <= limits::kViewQueryBytesMax, "a search has a limited length");
  const EventQuery::Place places[] = {
      {}, {.worker_gid = 13, .core = 5}, {.worker_gid = -1, .core = 0}, {.worker_gid = INT64_MAX}};
  for (const EventQuery::Place& place : places) {
    const EventQuery::Event event{.name = "nc_exec_running",
                                  .type = "nc_exec_running",
                                  .category = "neuron_hw",
                                  .duration_ns = 10'000'000,
                                  .place = place};
    const bool is_found = query->MatchesWithoutArguments(event);
    CheckPromise(!is_found || query->CanMatchAt(place), "a stream is ruled out only without hits");
    if (!is_found) continue;
    const bool matches = query->MatchesArguments(event, {{"model", std::string(text)}});
    CheckPromise(matches || query->needs_arguments(),
                 "arguments decide only where they are needed");
  }
  CheckPromise(!query->is_empty() || query->CanMatchAt({}), "an empty search finds everything");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = ViewRequest::Parse(text);
  if (request.ok()) {
    CheckRequest(*request);
    CheckSearch(request->query);
  } else {
    CheckRefusal(request.status());
  }
  CheckSearch(text);
  return 0;
}
