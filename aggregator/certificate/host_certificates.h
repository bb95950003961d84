// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "aggregator/certificate/make_certificate.h"

namespace neurontrace {

// Returns the outcome of the samples of every host that was sampled, ordered by instance id. A pure
// function.
std::vector<HostCertificate> MakeHostCertificates(const CertificateEvidence& evidence);

// Returns a sentence about what is missing of a host's samples; empty if nothing is.
std::string FindingOf(const HostCertificate& host);
// Returns a sentence about the times at which a host was not sampled; empty if there are none. Gaps
// are notes and no findings.
std::string NoteOf(const HostCertificate& host);

}  // namespace neurontrace
