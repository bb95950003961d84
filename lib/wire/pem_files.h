// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Whether the files of TLS can be used, found out before they are: gRPC itself says of a bad file
// only that handshakes fail. By OpenSSL; read whole, at most limits::kPemBytesMax. Any thread.
namespace neurontrace {

// When the first certificate of a PEM file ends to be valid, in seconds since 1970.
// FAILED_PRECONDITION names the file, and says what is wrong: it cannot be read, it has no
// certificate, the first one is not valid yet, or not any more.
absl::StatusOr<int64_t> CheckCertificateFile(const std::string& path);

// The same of one that may be over, or not yet begun. FAILED_PRECONDITION for a file without a
// certificate, and for one that does not say it.
absl::StatusOr<int64_t> CertificateEnd(const std::string& path);

// The same two of a file of authorities, which holds the old one and the new one while they change:
// when the first of those that are valid now ends. FAILED_PRECONDITION where none is valid, and
// where one cannot be read, as gRPC then takes those before it alone, and says nothing.
absl::StatusOr<int64_t> CheckAuthorityFile(const std::string& path);

// The same of a certificate that is there, as a connection shows that of its other end. Takes a
// tenth of a millisecond and more. FAILED_PRECONDITION where it is none.
absl::StatusOr<int64_t> EndOfCertificate(std::string_view pem);

// Where none is valid: when the last one that was has ended.
absl::StatusOr<int64_t> AuthorityEnd(const std::string& path);

// Whether the PEM file `key` has the private key, without a passphrase, of the first certificate of
// `cert`, which CheckCertificateFile let pass.
absl::Status CheckKeyFile(const std::string& key, const std::string& cert);

}  // namespace neurontrace
