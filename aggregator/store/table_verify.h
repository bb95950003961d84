// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "aggregator/store/database.h"

namespace neurontrace {

// Reads everything of a database but the chunks themselves: every block of every table, the ends of
// every blob file, every record of the small families. What passes can be opened and worked with.
// DATA_LOSS names the first damage. The database may be compacting meanwhile.
absl::Status VerifyTables(const Database& database);

}  // namespace neurontrace
