// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace neurontrace {

// Adds each metric that was renamed before version 0.1.0 once more under its old name, so that
// dashboards and alerts of builds before that keep working for one release. CHANGELOG.md lists the
// names. Any thread.
void AddOldMetricNames(std::vector<prometheus::MetricFamily>& families);

}  // namespace neurontrace
