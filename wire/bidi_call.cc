// SPDX-License-Identifier: Apache-2.0
#include "wire/bidi_call.h"

namespace neurontrace {

absl::Status ToAbslStatus(const grpc::Status& status) {
  // The codes of both are the same numbers.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace neurontrace
