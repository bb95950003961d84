// SPDX-License-Identifier: Apache-2.0
#include "daemon/program_metrics.h"

#include "health/metric_builders.h"

namespace neurontrace {
ProgramMetrics::ProgramMetrics(prometheus::Registry& registry, const Names& names)
    : log_lines_left_out_(MakeCounter(
          registry, names.log_lines_left_out,
          "Log lines that were not written, as there were too many alike", names.labels)),
      config_taken_(MakeCounter(registry, names.config_taken,
                                "Changed versions of the file of --config that were taken",
                                names.labels)),
      config_refused_(MakeCounter(registry, names.config_refused,
                                  "Changed versions of the file of --config that were bad",
                                  names.labels)),
      config_good_(MakeGauge(registry, names.config_good,
                             "0 while the file of --config is bad: what was before is in force",
                             names.labels)),
      options_after_restart_(MakeGauge(registry, names.options_after_restart,
                                       "Options that wait for a restart to be as the file says",
                                       names.labels)) {}

void ProgramMetrics::Publish(const ProgramLog& log, const ConfigReload& reload) {
  const ConfigReload::State state = reload.state();
  RaiseCounter(log_lines_left_out_, static_cast<double>(log.left_out()));
  RaiseCounter(config_taken_, static_cast<double>(state.taken));
  RaiseCounter(config_refused_, static_cast<double>(state.refused));
  config_good_.Set(state.problem.empty() ? 1 : 0);
  options_after_restart_.Set(static_cast<double>(state.after_restart.size()));
}

}  // namespace neurontrace
