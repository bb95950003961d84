// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/view_service.h"

#include "aggregator/view/view_request.h"
#include "lib/base/status.h"
#include "lib/health/metric_builders.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {

ViewService::ViewService(const Deps& deps)
    : clocks_(deps.clocks),
      calls_({.clock = deps.clock,
              .what = "views",
              .at_once_max = limits::kViewsAtOnceMax,
              .of_caller_max =
                  deps.callers_have_names ? limits::kViewsOfCallerMax : limits::kViewsAtOnceMax,
              .refused = MakeCounter(deps.registry, "neurontrace_aggregator_views_refused_total",
                                     "Questions of the page refused because too many were "
                                     "being answered"),
              .unread = MakeCounter(deps.registry, "neurontrace_aggregator_views_stalled_total",
                                    "Answers to the page cancelled because the client stopped "
                                    "reading")}),
      views_({.store = deps.store, .clocks = *this, .clock = deps.clock}) {}

absl::StatusOr<std::string> ViewService::View(const CaptureRecord& record, std::string_view what,
                                              std::string_view query,
                                              const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(const ViewRequest request, ViewRequest::Parse(query));
  if (what == "layout") {
    ASSIGN_OR_RETURN(const auto layout, views_.Layout(record));
    return layout->Json();
  }
  if (what == "spans") return views_.Spans(record, request, cancelled);
  if (what == "events") return views_.Events(record, request, cancelled);
  if (what == "search") return views_.Search(record, request, cancelled);
  if (what == "summary") return views_.Summary(record, request, cancelled);
  if (what == "heat") return views_.Heat(record, request, cancelled);
  if (what == "links") return views_.Links(record, request, cancelled);
  return InvalidArgument(
      "'{}' is not a view; there are layout, spans, events, search, summary, heat and links", what);
}

}  // namespace neurontrace
