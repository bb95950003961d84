// SPDX-License-Identifier: Apache-2.0
// Aggregator as a process: its page, what its operators' service stands on, and the configuration
// that changes while it runs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/agents_table.h"
#include "aggregator/aggregator.h"
#include "aggregator/session/capture_arming.h"
#include "base/time_units.h"
#include "daemon/daemon_process.h"
#include "trace/state_words.h"

namespace neurontrace {
namespace {

StatusTable CapturesTable(const Coordinator& coordinator, const StoreQuota& quota,
                          uint64_t now_realtime_ns) {
  StatusTable table{
      "Captures that run", {"capture", "kind", "state", "for", "workers", "bytes stored"}, {}};
  coordinator.ForEachRunning([&](const CaptureRecord& record) {
    const uint64_t began_ns = std::min(record.started_realtime_ns, now_realtime_ns);
    table.rows.push_back(
        {record.id.ToString(), std::string(WordsOf(record.spec.mode)),
         std::string(WordsOf(record.state)), FormatSeconds(now_realtime_ns - began_ns),
         std::to_string(Tally(record).selected), std::to_string(quota.StoredBytes(record.id))});
  });
  return table;
}

}  // namespace

DaemonProcess::Options Aggregator::ProcessOptions(const AggregatorConfig& config) {
  return {.program = "neurontrace-aggregator",
          .metrics = {.log_lines_left_out = "neurontrace_aggregator_log_lines_left_out_total",
                      .config_taken = "neurontrace_aggregator_config_taken_total",
                      .config_refused = "neurontrace_aggregator_config_refused_total",
                      .config_good = "neurontrace_aggregator_config_good",
                      .options_after_restart = "neurontrace_aggregator_options_after_restart",
                      .ready_condition = "neurontrace_aggregator_ready_condition",
                      .sequence_age = "neurontrace_aggregator_sequence_age_seconds"},
          .labels = {},
          .config_file = config.config_file,
          .options = config.options,
          .at_once = AggregatorOptionsAtOnce(),
          .security = config.security,
          .address = config.listen,
          .side = ChannelSide::kServer};
}

ConfigReload::Hooks Aggregator::MakeReloadHooks(const Process& process) {
  return neurontrace::MakeReloadHooks<AggregatorConfig>(
      process.log, process.read_config, [this](const AggregatorConfig& config) {
        quota_.Set(config.quotas);
        store_metrics_.SetQuotas(config.quotas);
        store_->artifacts().files().SetBytesMax(config.artifact_bytes);
      });
}

std::vector<StatusTable> Aggregator::StatusTables() {
  const uint64_t now_ns = clock_.RealtimeNs();
  std::vector<StatusTable> tables;
  tables.push_back({"This aggregator",
                    {},
                    {{"id of the store", store_->aggregator_id()},
                     {"running for", FormatSeconds(clock_.MonotonicNs() - began_monotonic_ns_)},
                     {"captures in the store", std::to_string(store_->captures().size())},
                     {"bytes of the store", std::to_string(store_->bytes())},
                     {"bytes free on its disk", std::to_string(quota_.FreeBytes())}}});
  tables.push_back(AgentsTable(coordinator_.registry(), now_ns));
  tables.push_back(CapturesTable(coordinator_, quota_, now_ns));
  return tables;
}

OperatorDeps Aggregator::MakeOperatorDeps() {
  return {.sequence = loop_,
          .coordinator = coordinator_,
          .store = *store_,
          .watch = watch_,
          .clock = clock_,
          .export_capture = std::bind_front(&Aggregator::ExportForOperator, this),
          .exports = exports_under_way_,
          .watches = watches_,
          .clocks =
              [this](const CaptureRecord* capture) {
                return capture == nullptr ? clocks_->book().Now(clock_.RealtimeNs())
                                          : clocks_->OfCapture(*capture);
              },
          .host_clocks =
              [this](const CaptureRecord& capture) { return clocks_->HostsOfCapture(capture); },
          .clock_bounds = std::bind_front(&Aggregator::ClockBounds, this),
          .room_for = std::bind_front(&Aggregator::RoomFor, this),
          .list_triggers = [this] { return triggers_->List(); },
          .fire_trigger =
              [this](const v1::FireTriggerRequest& request) { return triggers_->Fire(request); },
          .refresh_usage = [this] { RefreshUsage(); },
          .claim_for_deletion =
              [this](const CaptureId& id) { return retention_->leases().ClaimForDeletion(id); },
          .caller = std::bind_front(&Aggregator::CallerOf, this),
          .audit = std::bind_front(&Aggregator::NoteOrder, this),
          .started_realtime_ns = clock_.RealtimeNs()};
}

}  // namespace neurontrace
