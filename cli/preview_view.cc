// SPDX-License-Identifier: Apache-2.0
#include "cli/preview_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "cli/outcome_view.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

std::string FormatShare(uint64_t part, uint64_t whole) {
  if (whole == 0) return part == 0 ? "0 %" : "more than all";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent > 0 && percent < 0.1) return "less than 0.1 %";
  return percent < 10 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string FormatMegabits(double bytes_per_second) {
  return fmt::format("{:.1f} Mbit/s", bytes_per_second * 8 / 1e6);
}

std::string FormatWorkers(const v1::Capture& capture) {
  size_t would = 0;
  std::set<std::string> instances;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (worker.framework() || IsLeftOut(worker)) continue;
    ++would;
    instances.insert(worker.worker().instance_id());
  }
  return fmt::format("{} on {}", FormatCounted(would, "worker"),
                     FormatCounted(instances.size(), "instance"));
}

uint64_t Rounded(double value) { return static_cast<uint64_t>(std::llround(std::max(value, 0.0))); }

}  // namespace

std::string FormatPreview(const v1::Capture& capture) {
  const v1::CapturePreview& preview = capture.preview();
  std::string out = fmt::format(
      "would record  {}\nrate          {} events/s, {}/s, measured over {}\n",
      FormatWorkers(capture), FormatCount(Rounded(preview.events_per_second())),
      FormatBytes(Rounded(preview.bytes_per_second())), FormatDuration(preview.measured_ns()));
  uint64_t bytes = preview.bytes();
  if (preview.duration_ns() != 0) {
    out += fmt::format("in {:<9}  {} events, {}\n", FormatDuration(preview.duration_ns()),
                       FormatCount(preview.events()), FormatBytes(bytes));
  } else {
    bytes = Rounded(preview.bytes_per_second() * 3600);
    out +=
        fmt::format("in an hour    {} events, {} (no --duration was given)\n",
                    FormatCount(Rounded(preview.events_per_second() * 3600)), FormatBytes(bytes));
  }
  out += fmt::format("disk          {} of the {} that are free\n",
                     FormatShare(bytes, preview.store_free_bytes()),
                     FormatBytes(preview.store_free_bytes()));
  if (preview.quota_left_bytes() != std::numeric_limits<uint64_t>::max()) {
    out += fmt::format("quota         {} of the {} that are left\n",
                       FormatShare(bytes, preview.quota_left_bytes()),
                       FormatBytes(preview.quota_left_bytes()));
  }
  out +=
      fmt::format("network       {} to the aggregator", FormatMegabits(preview.bytes_per_second()));
  if (!preview.most_instance_id().empty()) {
    out += fmt::format(", at most {} from one instance ({})",
                       FormatMegabits(preview.most_bytes_per_second()), preview.most_instance_id());
  }
  out += "\n";
  for (const std::string& warning : capture.warnings()) out += "warning: " + warning + "\n";
  for (const std::string& objection : preview.objections()) {
    out += "would be refused: " + objection + "\n";
  }
  return out + "Nothing was recorded.\n";
}

}  // namespace neurontrace::cli
