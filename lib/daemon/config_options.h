// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/daemon/program_log.h"

namespace CLI {
class App;
class Error;
class Option;
class Validator;
}  // namespace CLI

// The options that agent and aggregator have in common.
namespace neurontrace {

// --log-level and --log-format.
void AddLogOptions(CLI::App& app, std::string& level, LogFormat& format);

// Adds --config, which is returned, and --validate-config. The file is TOML (TomlOptions); one over
// limits::kConfigFileBytesMax is refused.
CLI::Option& AddConfigOptions(CLI::App& app, bool& validate, const std::string& about_file);

// Turns a size as people write it (ParseByteSize) into its number of bytes: for Option::transform.
CLI::Validator ByteSize();

// What is wrong, for people: in a line.
std::string WordsOf(const CLI::Error& error);

// The file of an app that has parsed; empty: none was given.
std::string ConfigFileOf(const CLI::App& app);

}  // namespace neurontrace
