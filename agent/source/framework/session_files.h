// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace neurontrace {

// How a profiler of XLA names the files of one session: HOST.xplane.pb, HOST.trace.json.gz, and
// perfetto_trace.json.gz beside them. These functions work on paths, absolute or relative to one
// directory. All but OnlyXSpaceIn are pure.
bool IsXSpaceName(std::string_view path);
// Returns the XSpace that a JSON file of a session was made from, by its name; nothing if the name
// is not that of one. The XSpace need not exist.
std::optional<std::string> XSpaceOfTrace(std::string_view path);
// Returns true for perfetto_trace.json[.gz], which names no host and so belongs to the only XSpace
// in its folder.
bool IsPerfettoTraceName(std::string_view path);
// Returns the folder with the slash at its end; empty for a name without a folder.
std::string_view FolderOf(std::string_view path);

// Lists a folder and returns the path of its only XSpace; nothing if there is none, or several.
std::optional<std::string> OnlyXSpaceIn(const std::string& folder);

}  // namespace neurontrace
