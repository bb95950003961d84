// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/daemon/program_log.h"

// Declared here, so that files that include this header do not compile CLI11.
namespace CLI {
class App;
class Error;
class Option;
class Validator;
}  // namespace CLI

// The options that agent and aggregator share, and the TOML reader of --config. Used at the start
// and at each reload, each parser by one thread.
namespace neurontrace {

// Adds --log-level and --log-format. `level` and `format` must outlive the parsing.
void AddLogOptions(CLI::App& app, std::string& level, LogFormat& format);

// Adds --config, which is returned, and --validate-config. The file is TOML
// (docs/operator/configuration.md); one over limits::kConfigFileBytesMax is refused. `about_file`
// begins the help of --config.
CLI::Option& AddConfigOptions(CLI::App& app, bool& validate, const std::string& about_file);

// Returns a transformation for Option::transform that replaces a size as people write it
// (ParseByteSize) by its number of bytes.
CLI::Validator ByteSize();

// Returns the message of a parser's error, without control characters and in one line.
std::string ToString(const CLI::Error& error);

// Returns the path given to --config of a parsed app; "" if none was given.
std::string ConfigFileOf(const CLI::App& app);

}  // namespace neurontrace
