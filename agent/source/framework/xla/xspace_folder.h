// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// Makes the folder DIRECTORY/SESSION and the file HOST.xplane.pb in it, which appears there with
// its whole content. Other users may write to the directory: no link of theirs is followed, and
// nothing that exists already is opened or replaced. The folder belongs to this process alone,
// which others of its group may read.
//
// Fails with ALREADY_EXISTS if the folder is there, with RESOURCE_EXHAUSTED if the disk or the
// quota is full, and otherwise with UNAVAILABLE; messages name the path. After a failure no
// HOST.xplane.pb is there. Blocks for the disk. Any thread; one session is saved once.
absl::Status SaveXSpace(const std::string& directory, const std::string& session,
                        const std::string& host, std::string_view bytes);

}  // namespace neurontrace
