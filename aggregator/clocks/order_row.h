// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "aggregator/align/order_check.h"
#include "aggregator/store/stored_bytes.h"

namespace neurontrace {

// A check of order as it is stored among the clocks of a capture (clock_rows.h), behind what every
// row begins with. Pure functions, any thread.
void WriteOrderCheck(const OrderCheck& check, StoredBytesWriter& out);
// INVALID_ARGUMENT for anything that writing does not give.
absl::StatusOr<OrderCheck> ReadOrderCheck(StoredBytesReader& in);

}  // namespace neurontrace
