// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "aggregator/store/store_check.h"

namespace neurontrace {

// neurontrace-aggregator --store-check: the report goes to `out`, a progress bar to `err` where
// that is a terminal. Gives the exit code: 0 sound, 1 damaged, 2 where there is nothing to look at.
struct StoreCheckCommandOptions {
  std::string store;  // its directory
  bool json = false;  // how the report is printed
};
int RunStoreCheck(const StoreCheckCommandOptions& options, FILE* out, FILE* err);

// The report for people, and as one JSON object in one line.
std::string FormatReport(const StoreCheckReport& report, const std::string& store);
std::string FormatReportJson(const StoreCheckReport& report, const std::string& store);

}  // namespace neurontrace
