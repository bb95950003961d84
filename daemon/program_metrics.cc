// SPDX-License-Identifier: Apache-2.0
#include "daemon/program_metrics.h"

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

void RaiseTo(prometheus::Counter& counter, uint64_t value) {
  const double more = static_cast<double>(value) - counter.Value();
  if (more > 0) counter.Increment(more);
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
  RaiseTo(log_lines_left_out_, log.left_out());
  RaiseTo(config_taken_, state.taken);
  RaiseTo(config_refused_, state.refused);
  config_good_.Set(state.problem.empty() ? 1 : 0);
  options_after_restart_.Set(static_cast<double>(state.after_restart.size()));
}

}  // namespace neurontrace
