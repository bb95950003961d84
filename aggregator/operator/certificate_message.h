// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aggregator/certificate/certificate.h"
#include "neurontrace/v1/certificate.pb.h"

namespace neurontrace {

// Convert certificates for operators and exports. The message has everything that the certificate
// has, with enums of the same numbers. Pure functions.
v1::Certificate ToMessage(const Certificate& certificate);
void ToMessage(const JobRanks& job, v1::JobRanks& message);

// Converts only what one line about a capture needs: verdict, account, findings and notes.
v1::Certificate ToBriefMessage(const Certificate& certificate);

// Returns the message in proto3's JSON on one line, with the field names of the .proto file and
// every field present. Exports contain this form.
std::string ToJson(const v1::Certificate& message);

}  // namespace neurontrace
