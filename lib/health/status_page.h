// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <string>
#include <vector>

namespace neurontrace {

// One table of /statusz. Cells are plain text of any origin; RenderStatusPage cleans, cuts and
// escapes them. A row may have fewer cells than there are columns.
struct StatusTable {
  std::string title;
  // Headers; empty: no header line.
  std::vector<std::string> columns;
  // Cells in the order of the columns.
  std::vector<std::vector<std::string>> rows;
};

// The content of /statusz, which a process shows to a person with a browser.
struct StatusPage {
  std::string program;  // "neurontrace-agent"
  std::string build;    // as --version prints it
  // Returns the tables. Called on a thread of the server, a few at a time, and may block it for a
  // few seconds. `is_local`: the client is on this machine, and may see the contents of logs.
  std::function<std::vector<StatusTable>(bool is_local)> tables;
};

// Returns the page as HTML without scripts: the conditions of HealthState::Describe, the tables,
// and the metrics. At most limits::kStatusRowsMax rows of a table and limits::kStatusMetricRowsMax
// of a metric; the numbers of omitted rows are shown. Pure, except for calling `page.tables`.
std::string RenderStatusPage(const StatusPage& page, const std::string& conditions, bool is_local,
                             const std::vector<prometheus::MetricFamily>& metrics);

}  // namespace neurontrace
