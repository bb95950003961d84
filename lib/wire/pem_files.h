// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Checks of TLS files before they are used: for a bad file gRPC itself only reports that handshakes
// fail. By OpenSSL. Files are read whole, at most limits::kPemBytesMax. Times are seconds since
// 1970. Any thread.
namespace neurontrace {

// Returns when the first certificate of a PEM file expires. Fails with FAILED_PRECONDITION, naming
// the file, if it cannot be read, has no certificate, or the first one is not valid yet or has
// expired.
absl::StatusOr<int64_t> CheckCertificateFile(const std::string& path);

// Returns the same for a certificate that may have expired or not be valid yet. Fails with
// FAILED_PRECONDITION if the file has no certificate, or the certificate has no end.
absl::StatusOr<int64_t> CertificateEnd(const std::string& path);

// Returns when the first of the currently valid certificates in a file of authorities expires;
// during a rotation the file has the old and the new one. Fails with FAILED_PRECONDITION if none is
// valid, or one cannot be read: gRPC would then silently use only those before it.
absl::StatusOr<int64_t> CheckAuthorityFile(const std::string& path);

// Returns when a certificate in PEM form expires, as a connection presents that of its peer. Takes
// at least a tenth of a millisecond. Fails with FAILED_PRECONDITION if it cannot be parsed.
absl::StatusOr<int64_t> EndOfCertificate(std::string_view pem);

// Returns the identities in a certificate in PEM form, as access files write them and gRPC finds
// them in a connection: "uri:URI" and "dns:NAME" of its alternative names, and "cn:NAME" of its
// subject. Names with a zero byte, which programs read differently, are left out. Fails with
// FAILED_PRECONDITION if it cannot be parsed.
absl::StatusOr<std::vector<std::string>> IdentitiesOfCertificate(std::string_view pem);

// As CheckAuthorityFile, but if none is valid it returns when the last of them expired.
absl::StatusOr<int64_t> AuthorityEnd(const std::string& path);

// Checks that the PEM file `key` has a private key without a passphrase, and that it belongs to the
// first certificate of `cert`, which CheckCertificateFile has accepted.
absl::Status CheckKeyFile(const std::string& key, const std::string& cert);

}  // namespace neurontrace
