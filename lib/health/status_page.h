// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <string>
#include <vector>

namespace neurontrace {

// One table of /statusz. Cells are plain text, of anybody: they are cleaned, cut and escaped.
struct StatusTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

// What a process reports about itself to a person with a browser.
struct StatusPage {
  std::string program;  // "neurontrace-agent"
  std::string build;    // as --version says it
  // Called on a thread of the server's, a few at a time, and may block it for a few seconds.
  // `is_local`: who asks is on this machine, and may see what is in logs.
  std::function<std::vector<StatusTable>(bool is_local)> tables;
};

// The page as HTML without scripts: the conditions of HealthState::Describe, the tables, and the
// metrics. At most limits::kStatusRowsMax rows of a table and limits::kStatusMetricRowsMax of a
// metric; what is left out is said.
std::string RenderStatusPage(const StatusPage& page, const std::string& conditions, bool is_local,
                             const std::vector<prometheus::MetricFamily>& metrics);

}  // namespace neurontrace
