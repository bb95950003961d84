// SPDX-License-Identifier: Apache-2.0
#include "lib/health/metric_aliases.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace neurontrace {
namespace {

// The present name, and the one before version 0.1.0.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kOldNames = {{
    {"neurontrace_agent_clock_snapshots_dropped_total",
     "neurontrace_agent_clock_snapshots_let_go_total"},
    {"neurontrace_agent_upload_chunks_missing_total", "neurontrace_agent_upload_gone_total"},
    {"neurontrace_agent_trigger_check_seconds_total",
     "neurontrace_agent_trigger_looking_seconds_total"},
    {"neurontrace_agent_triggers_undelivered_total", "neurontrace_agent_triggers_unheard_total"},
    {"neurontrace_aggregator_exports_stalled_total", "neurontrace_aggregator_exports_unread_total"},
    {"neurontrace_aggregator_watches_stalled_total", "neurontrace_aggregator_watches_unread_total"},
    {"neurontrace_aggregator_artifacts_abandoned_total",
     "neurontrace_aggregator_artifacts_forgone_total"},
    {"neurontrace_aggregator_standing_exports_abandoned_total",
     "neurontrace_aggregator_standing_exports_forgone_total"},
    {"neurontrace_agent_tap_accepts_deferred_total", "neurontrace_agent_tap_accepts_put_off_total"},
    {"neurontrace_agent_config_reloads_total", "neurontrace_agent_config_taken_total"},
    {"neurontrace_aggregator_config_reloads_total", "neurontrace_aggregator_config_taken_total"},
    {"neurontrace_agent_tap_protocol_errors_total", "neurontrace_agent_taps_misbehaved_total"},
    {"neurontrace_agent_artifact_scans_truncated_total",
     "neurontrace_agent_artifact_looks_cut_short_total"},
    {"neurontrace_agent_config_valid", "neurontrace_agent_config_good"},
    {"neurontrace_aggregator_config_valid", "neurontrace_aggregator_config_good"},
    {"neurontrace_aggregator_access_file_valid", "neurontrace_aggregator_access_file_good"},
    {"neurontrace_aggregator_trigger_file_valid", "neurontrace_aggregator_trigger_file_good"},
    {"neurontrace_agent_events_over_limit_total", "neurontrace_agent_events_unfit_total"},
}};

}  // namespace

void AddOldMetricNames(std::vector<prometheus::MetricFamily>& families) {
  const size_t count = families.size();
  for (const auto& [name, old_name] : kOldNames) {
    const auto end = families.begin() + static_cast<std::ptrdiff_t>(count);
    const auto found = std::find_if(families.begin(), end,
                                    [&](const auto& family) { return family.name == name; });
    if (found == end) continue;
    prometheus::MetricFamily alias = *found;
    alias.name = old_name;
    alias.help = "Old name of " + std::string(name) + ", until version 0.2.0";
    families.push_back(std::move(alias));
  }
}

}  // namespace neurontrace
