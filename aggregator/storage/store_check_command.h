// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "aggregator/store/store_check.h"

namespace neurontrace {

// The options of --store-check.
struct StoreCheckCommandOptions {
  std::string store;  // its directory
  bool json = false;  // how the report is printed
};
// Runs `neurontrace-aggregator --store-check`. Writes the report to `out`, and a progress bar to
// `err` if that is a terminal. Notes damage beside the store for the certificates. Returns the exit
// code: 0 if the store is sound, 1 if it is damaged, 2 if there is no store that could be checked.
// Needs no running aggregator, and none may have the store open.
int RunStoreCheck(const StoreCheckCommandOptions& options, FILE* out, FILE* err);

// Return the report as text for people, and as one JSON object in one line. `store` is the
// directory, as it is named in the output. Pure.
std::string FormatReport(const StoreCheckReport& report, const std::string& store);
std::string FormatReportJson(const StoreCheckReport& report, const std::string& store);

}  // namespace neurontrace
