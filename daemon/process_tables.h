// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "daemon/config_reload.h"
#include "daemon/program_log.h"
#include "health/status_page.h"

namespace neurontrace {

// Appends what /statusz shows of the log and the configuration of a program. Lines of the log can
// name jobs, and options paths, so that they are for this machine alone.
void AppendProcessTables(const ProgramLog& log, const ConfigReload& reload, bool is_local,
                         std::vector<StatusTable>& tables);

}  // namespace neurontrace
