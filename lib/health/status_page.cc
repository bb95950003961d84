// SPDX-License-Identifier: Apache-2.0
#include "lib/health/status_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {
namespace {

// The style is inline and there are no scripts or other files, as the page's content security
// policy demands. The page reloads itself every 10 s.
constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\">"
    "<meta http-equiv=\"refresh\" content=\"10\">"
    "<style>\n"
    "body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:75rem;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}\n"
    "h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}"
    "p{margin:.2rem 0;color:#555}\n"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;"
    "border-bottom:1px solid #e2e2e2;overflow-wrap:break-word}\n"
    "th{color:#555;font-weight:600}td{font-variant-numeric:tabular-nums}"
    ".ok{color:#116329}.bad{color:#b3261e;font-weight:600}\n"
    "@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}"
    "th,td{border-color:#333}p,th{color:#aaa}.ok{color:#6fcf8a}.bad{color:#ff8a80}}\n"
    "</style>";

// Appends text to the page. Every text passes through here, because jobs, paths and log lines may
// be crafted: control characters are removed, and all characters with a meaning in HTML are
// escaped.
void AppendEscaped(std::string_view text, std::string& html) {
  for (const char c : CleanText(text, limits::kStatusCellBytesMax)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
}

// Appends a table with at most `rows_max` rows, and the number of rows that were omitted.
void AppendTable(const StatusTable& table, size_t rows_max, std::string& html) {
  html += "<h2>";
  AppendEscaped(table.title, html);
  html += "</h2>\n";
  if (table.rows.empty()) {
    html += "<p>none</p>\n";
    return;
  }
  html += "<table>";
  if (!table.columns.empty()) {
    html += "<tr>";
    for (const std::string& column : table.columns) {
      // HTML allows omitting the end tags of cells and rows.
      html += "<th>";
      AppendEscaped(column, html);
    }
    html += "</tr>\n";
  }
  const size_t shown = std::min(table.rows.size(), rows_max);
  for (size_t i = 0; i < shown; ++i) {
    html += "<tr>";
    for (const std::string& cell : table.rows[i]) {
      html += "<td>";
      AppendEscaped(cell, html);
    }
    html += "</tr>\n";
  }
  html += "</table>\n";
  if (shown < table.rows.size()) {
    html += fmt::format("<p>and {} more</p>\n", table.rows.size() - shown);
  }
}

// Appends the lines of HealthState::Describe; those that do not hold are marked.
void AppendConditions(std::string_view conditions, std::string& html) {
  html += "<h2>Conditions</h2>\n<table>";
  while (!conditions.empty()) {
    const std::string_view line = conditions.substr(0, conditions.find('\n'));
    conditions.remove_prefix(std::min(line.size() + 1, conditions.size()));
    html += line.starts_with("NOT ") ? "<tr><td class=\"bad\">" : "<tr><td class=\"ok\">";
    AppendEscaped(line, html);
    html += "</tr>\n";
  }
  html += "</table>\n";
}

// Returns a metric's value as text; of a histogram the number and the mean. "" for types that this
// program does not make.
std::string ValueOf(prometheus::MetricType type, const prometheus::ClientMetric& metric) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return fmt::format("{}", metric.counter.value);
    case prometheus::MetricType::Gauge:
      return fmt::format("{}", metric.gauge.value);
    case prometheus::MetricType::Histogram: {
      const auto& of = metric.histogram;
      if (of.sample_count == 0) return "0 times";
      return fmt::format("{} times, {:.6g} on average", of.sample_count,
                         of.sample_sum / static_cast<double>(of.sample_count));
    }
    default:
      return "";
  }
}

// Appends the series of one metric to the table. Their number is limited, so that a metric with
// many instances does not displace the others.
void AddRows(const prometheus::MetricFamily& family, StatusTable& table) {
  std::vector<std::vector<std::string>> rows;
  for (const prometheus::ClientMetric& metric : family.metric) {
    std::string labels;
    for (const auto& label : metric.label) {
      labels += fmt::format("{}{}={}", labels.empty() ? "" : " ", label.name, label.value);
    }
    rows.push_back({family.name, std::move(labels), ValueOf(family.type, metric), family.help});
  }
  // Sorted by labels, so that the page does not change its order at each refresh.
  std::sort(rows.begin(), rows.end());
  if (rows.size() > limits::kStatusMetricRowsMax) {
    const size_t more = rows.size() - limits::kStatusMetricRowsMax;
    rows.resize(limits::kStatusMetricRowsMax);
    rows.push_back({family.name, fmt::format("{} more", more), "", "see /metrics for all"});
  }
  std::move(rows.begin(), rows.end(), std::back_inserter(table.rows));
}

// Returns the table of all metrics, sorted by name.
StatusTable NumbersTable(const std::vector<prometheus::MetricFamily>& families) {
  StatusTable table{"Numbers", {"metric", "labels", "value", "says"}, {}};
  std::vector<const prometheus::MetricFamily*> by_name;
  for (const prometheus::MetricFamily& family : families) by_name.push_back(&family);
  std::sort(by_name.begin(), by_name.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const prometheus::MetricFamily* const family : by_name) AddRows(*family, table);
  return table;
}

}  // namespace

std::string RenderStatusPage(const StatusPage& page, const std::string& conditions, bool is_local,
                             const std::vector<prometheus::MetricFamily>& metrics) {
  std::string html(kHead);
  html += "<title>";
  AppendEscaped(page.program, html);
  html += "</title></head><body>\n<h1>";
  AppendEscaped(page.program, html);
  html += "</h1>\n<p>";
  AppendEscaped(page.build, html);
  html += "</p>\n";
  AppendConditions(conditions, html);
  for (const StatusTable& table : page.tables(is_local)) {
    AppendTable(table, limits::kStatusRowsMax, html);
  }
  // Already limited metric by metric.
  const StatusTable numbers = NumbersTable(metrics);
  AppendTable(numbers, numbers.rows.size(), html);
  html += "</body></html>\n";
  return html;
}

}  // namespace neurontrace
