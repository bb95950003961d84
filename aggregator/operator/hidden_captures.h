// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include "aggregator/access/visibility.h"

namespace neurontrace {

// Removes the ids of captures that `can_see` denies from every text of `message` and of the
// messages inside it, and clears fields of bytes that hold such an id. Works by reflection, so that
// a new field is covered without a change here. Asks once about each id, as `can_see` may read the
// store; it is only called during this call, on this thread.
void HideCapturesIn(const CanSeeCapture& can_see, google::protobuf::Message& message);

}  // namespace neurontrace
