// SPDX-License-Identifier: Apache-2.0
// Aggregator as a process: its page, what its operators' service stands on, and the configuration
// that changes while it runs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/agents_table.h"
#include "aggregator/aggregator.h"
#include "aggregator/session/capture_arming.h"
#include "base/build_facts.h"
#include "base/post_and_wait.h"
#include "base/status.h"
#include "base/time_units.h"
#include "daemon/process_tables.h"
#include "trace/state_words.h"

namespace neurontrace {
namespace {

constexpr std::chrono::milliseconds kStatusPatience{2'000};

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

ProgramMetrics::Names AggregatorProgramMetrics() {
  return {.log_lines_left_out = "neurontrace_aggregator_log_lines_left_out_total",
          .config_taken = "neurontrace_aggregator_config_taken_total",
          .config_refused = "neurontrace_aggregator_config_refused_total",
          .config_good = "neurontrace_aggregator_config_good",
          .options_after_restart = "neurontrace_aggregator_options_after_restart",
          .labels = {}};
}

ConfigReload::Hooks Aggregator::MakeReloadHooks(const Process& process) {
  return {.read = [this, read = process.read_config]() -> absl::StatusOr<OptionTexts> {
            ASSIGN_OR_RETURN(new_config_, read());
            return new_config_.options;
          },
          .apply =
              [this] {
                log_.SetLevel(new_config_.log_level);
                log_.SetFormat(new_config_.log_format);
                quota_.Set(new_config_.quotas);
                store_metrics_.SetQuotas(new_config_.quotas);
                store_->artifacts().files().SetBytesMax(new_config_.artifact_bytes);
                return absl::OkStatus();
              }};
}

StatusPage Aggregator::MakeStatusPage() {
  return {
      .program = "neurontrace-aggregator",
      .build = BuildFacts("neurontrace-aggregator", {}),
      .tables = [this](bool is_local) {
        auto tables = PostAndWait(loop_, "the aggregator", kStatusPatience,
                                  [&] { return StatusTables(is_local); });
        if (tables.ok()) return *std::move(tables);
        return std::vector<StatusTable>{{"Busy", {}, {{std::string(tables.status().message())}}}};
      }};
}

std::vector<StatusTable> Aggregator::StatusTables(bool is_local) {
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
  AppendProcessTables(log_, reload_, is_local, tables);
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
