// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/program_log.h"

namespace CLI {
class App;
class Error;
class Option;
}  // namespace CLI

// The options that agent and aggregator have in common.
namespace neurontrace {

// --log-level and --log-format.
void AddLogOptions(CLI::App& app, std::string& level, LogFormat& format);

// --config, which is returned, and --validate-config. A key of the file that is no option is a
// mistake, as it is on the command line; so is a file over limits::kConfigFileBytesMax. Mistakes
// are told by WordsOf.
CLI::Option& AddConfigOptions(CLI::App& app, bool& validate, const std::string& about_file);

// What is wrong, for people: in a line.
std::string WordsOf(const CLI::Error& error);

// The file of an app that has parsed; empty: none was given.
std::string ConfigFileOf(const CLI::App& app);

}  // namespace neurontrace
