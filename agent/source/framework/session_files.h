// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace neurontrace {

// What a profiler of XLA names the files of one session: HOST.xplane.pb, HOST.trace.json.gz, and
// perfetto_trace.json.gz beside them. Paths, or paths relative to one directory.
bool IsXSpaceName(std::string_view path);
// Of a JSON file of a session: the XSpace that it was made from. nullopt: it is none by its name.
std::optional<std::string> XSpaceOfTrace(std::string_view path);
// True for perfetto_trace.json[.gz], which names no host: it is of the only XSpace in its folder.
bool IsPerfettoTraceName(std::string_view path);
// With the slash at its end; empty for a name without a folder.
std::string_view FolderOf(std::string_view path);

// The path of the only XSpace in a folder; nullopt where there is none or several.
std::optional<std::string> OnlyXSpaceIn(const std::string& folder);

}  // namespace neurontrace
