// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <string>

#include "daemon/config_reload.h"
#include "daemon/program_log.h"

namespace neurontrace {

// What a program's log and configuration count, as Prometheus metrics. One thread.
class ProgramMetrics {
 public:
  struct Names {
    const char* log_lines_left_out;
    const char* config_taken;
    const char* config_refused;
    const char* config_good;
    const char* options_after_restart;
    prometheus::Labels labels;
  };
  // The registry owns the metrics.
  ProgramMetrics(prometheus::Registry& registry, const Names& names);

  void Publish(const ProgramLog& log, const ConfigReload& reload);

 private:
  prometheus::Counter& log_lines_left_out_;
  prometheus::Counter& config_taken_;
  prometheus::Counter& config_refused_;
  prometheus::Gauge& config_good_;
  prometheus::Gauge& options_after_restart_;
};

}  // namespace neurontrace
