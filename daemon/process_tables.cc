// SPDX-License-Identifier: Apache-2.0
#include "daemon/process_tables.h"

#include <string>
#include <utility>

namespace neurontrace {

void AppendProcessTables(const ProgramLog& log, const ConfigReload& reload, bool is_local,
                         std::vector<StatusTable>& tables) {
  if (!is_local) {
    tables.push_back({"Configuration and warnings",
                      {},
                      {{"are shown to this machine alone: ask there, or through a port-forward"}}});
    return;
  }
  StatusTable warnings{"Newest warnings and errors", {}, {}};
  for (std::string& line : log.RecentWarnings()) warnings.rows.push_back({std::move(line)});
  tables.push_back(std::move(warnings));
  const ConfigReload::State state = reload.state();
  StatusTable options{"Configuration", {"option", "is", "after a restart"}, {}};
  if (!state.problem.empty()) options.rows.push_back({"the file is bad", state.problem, ""});
  for (const auto& [name, text] : reload.in_force()) {
    std::string later;
    for (const OptionChange& change : state.after_restart) {
      if (change.name == name) later = change.after;
    }
    if (!text.empty() || !later.empty()) options.rows.push_back({name, text, std::move(later)});
  }
  tables.push_back(std::move(options));
}

}  // namespace neurontrace
