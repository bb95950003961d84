// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "aggregator/certificate/make_certificate.h"

namespace neurontrace {

// What there is of the samples of every host that was sampled, in the order of their names. Pure.
std::vector<HostCertificate> MakeHostCertificates(const CertificateEvidence& evidence);

// What is missing of a host's samples, in words; empty if nothing is.
std::string FindingOf(const HostCertificate& host);
// When a host was not sampled, in words; empty if it was all the time.
std::string NoteOf(const HostCertificate& host);

}  // namespace neurontrace
