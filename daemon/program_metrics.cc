// SPDX-License-Identifier: Apache-2.0
#include "daemon/program_metrics.h"

#include "health/raise_counter.h"

namespace neurontrace {
namespace {

prometheus::Counter& Counter(prometheus::Registry& registry, const ProgramMetrics::Names& names,
                             const char* name, const char* help) {
  return prometheus::BuildCounter()
      .Name(name)
      .Help(help)
      .Labels(names.labels)
      .Register(registry)
      .Add({});
}

prometheus::Gauge& Gauge(prometheus::Registry& registry, const ProgramMetrics::Names& names,
                         const char* name, const char* help) {
  return prometheus::BuildGauge()
      .Name(name)
      .Help(help)
      .Labels(names.labels)
      .Register(registry)
      .Add({});
}

}  // namespace

ProgramMetrics::ProgramMetrics(prometheus::Registry& registry, const Names& names)
    : log_lines_left_out_(Counter(registry, names, names.log_lines_left_out,
                                  "Log lines that were not written, as there were too many alike")),
      config_taken_(Counter(registry, names, names.config_taken,
                            "Changed versions of the file of --config that were taken")),
      config_refused_(Counter(registry, names, names.config_refused,
                              "Changed versions of the file of --config that were bad")),
      config_good_(Gauge(registry, names, names.config_good,
                         "0 while the file of --config is bad: what was before is in force")),
      options_after_restart_(Gauge(registry, names, names.options_after_restart,
                                   "Options that wait for a restart to be as the file says")) {}

void ProgramMetrics::Publish(const ProgramLog& log, const ConfigReload& reload) {
  const ConfigReload::State state = reload.state();
  RaiseCounter(log_lines_left_out_, static_cast<double>(log.left_out()));
  RaiseCounter(config_taken_, static_cast<double>(state.taken));
  RaiseCounter(config_refused_, static_cast<double>(state.refused));
  config_good_.Set(state.problem.empty() ? 1 : 0);
  options_after_restart_.Set(static_cast<double>(state.after_restart.size()));
}

}  // namespace neurontrace
