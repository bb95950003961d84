// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/pem_files.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// Makes a deleter of OpenSSL's function for a type.
template <auto function>
struct FreeBy {
  template <typename T>
  void operator()(T* pointer) const {
    function(pointer);
  }
};
using Bio = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using AlternativeNames = std::unique_ptr<GENERAL_NAMES, FreeBy<GENERAL_NAMES_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;

// OpenSSL would otherwise ask on the terminal: encrypted keys are refused.
int NoPassphrase(char*, int, int, void*) { return -1; }

// Returns the certificates in the order of the file: at least one, at most `count_max`.
absl::StatusOr<std::vector<Certificate>> Certificates(const std::string& path, size_t count_max) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, limits::kPemBytesMax));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  std::vector<Certificate> certificates;
  // The queue of errors belongs to the thread, and an earlier user of OpenSSL may have left an
  // error in it.
  ERR_clear_error();
  while (certificates.size() < count_max) {
    Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
    if (certificate == nullptr) break;
    certificates.push_back(std::move(certificate));
  }
  // After the last certificate no further one begins, which OpenSSL reports as PEM_R_NO_START_LINE.
  // Any other error belongs to a certificate that is damaged.
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  if (certificates.empty()) {
    return FailedPrecondition(
        "{} has no certificate; it must be a PEM file with -----BEGIN CERTIFICATE-----", path);
  }
  if (error != 0 && ERR_GET_REASON(error) != PEM_R_NO_START_LINE) {
    return FailedPrecondition("certificate {} of {} cannot be read; it may be truncated",
                              certificates.size() + 1, path);
  }
  return certificates;
}

// Returns the first certificate of a file, which is the program's own; those that follow are its
// chain.
absl::StatusOr<Certificate> FirstCertificate(const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<Certificate> certificates, Certificates(path, 1));
  return std::move(certificates.front());
}

// Returns a time of a certificate for people, in UTC.
std::string DateOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown time";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

// Returns the end of a certificate's validity in seconds since 1970.
absl::StatusOr<int64_t> EndOf(const X509& certificate, const std::string& path) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &parts) != 1) {
    return FailedPrecondition("the certificate in {} has no valid expiry time", path);
  }
  return timegm(&parts);
}

// Fails with FAILED_PRECONDITION if the certificate has expired or is not valid yet.
absl::Status CheckValidNow(const X509& certificate, const std::string& path) {
  const ASN1_TIME* const end = X509_get0_notAfter(&certificate);
  if (X509_cmp_current_time(end) < 0) {
    return FailedPrecondition("the certificate in {} expired at {}; replace it", path, DateOf(end));
  }
  const ASN1_TIME* const begin = X509_get0_notBefore(&certificate);
  if (X509_cmp_current_time(begin) <= 0) return absl::OkStatus();
  return FailedPrecondition(
      "the certificate in {} is valid only from {}; check this machine's clock", path,
      DateOf(begin));
}

}  // namespace

absl::StatusOr<int64_t> CertificateEnd(const std::string& path) {
  ASSIGN_OR_RETURN(const Certificate certificate, FirstCertificate(path));
  return EndOf(*certificate, path);
}

absl::StatusOr<int64_t> CheckCertificateFile(const std::string& path) {
  ASSIGN_OR_RETURN(const Certificate certificate, FirstCertificate(path));
  RETURN_IF_ERROR(CheckValidNow(*certificate, path));
  return EndOf(*certificate, path);
}

absl::StatusOr<int64_t> EndOfCertificate(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) return FailedPrecondition("the certificate cannot be read");
  return EndOf(*certificate, "a connection");
}

absl::StatusOr<std::vector<std::string>> IdentitiesOfCertificate(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) return FailedPrecondition("the certificate cannot be read");
  std::vector<std::string> identities;
  const auto add = [&identities](const char* kind, const ASN1_STRING* name) {
    const std::string text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name)),
                           static_cast<size_t>(ASN1_STRING_length(name)));
    if (text.find('\0') == std::string::npos) identities.push_back(kind + text);
  };
  const AlternativeNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  // A stack that does not exist has -1 elements.
  const int count = sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) add("uri:", name->d.uniformResourceIdentifier);
    if (name->type == GEN_DNS) add("dns:", name->d.dNSName);
  }
  const X509_NAME* const subject = X509_get_subject_name(certificate.get());
  if (const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1); at >= 0) {
    add("cn:", X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  }
  ERR_clear_error();
  return identities;
}

// An authority that has expired does no harm beside a valid one.
absl::StatusOr<int64_t> CheckAuthorityFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<Certificate> certificates, Certificates(path, SIZE_MAX));
  std::optional<int64_t> first_end;
  absl::Status problem;
  for (const Certificate& certificate : certificates) {
    if (const absl::Status status = CheckValidNow(*certificate, path); !status.ok()) {
      // Update keeps the first error.
      problem.Update(status);
      continue;
    }
    ASSIGN_OR_RETURN(const int64_t end, EndOf(*certificate, path));
    first_end = std::min(end, first_end.value_or(end));
  }
  if (!first_end) return problem;
  return *first_end;
}

// Reads the file again only if no authority is valid, which is rare.
absl::StatusOr<int64_t> AuthorityEnd(const std::string& path) {
  if (const auto end = CheckAuthorityFile(path); end.ok()) return end;
  ASSIGN_OR_RETURN(const std::vector<Certificate> certificates, Certificates(path, SIZE_MAX));
  int64_t last_end = 0;
  for (const Certificate& certificate : certificates) {
    ASSIGN_OR_RETURN(const int64_t end, EndOf(*certificate, path));
    last_end = std::max(end, last_end);
  }
  return last_end;
}

absl::Status CheckKeyFile(const std::string& key, const std::string& cert) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(key, limits::kPemBytesMax));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const Key parsed(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (parsed == nullptr) {
    return FailedPrecondition("{} has no private key; it must be a PEM file without a passphrase",
                              key);
  }
  ASSIGN_OR_RETURN(const Certificate certificate, FirstCertificate(cert));
  // OpenSSL compares the public halves of both keys.
  const bool belongs = X509_check_private_key(certificate.get(), parsed.get()) == 1;
  ERR_clear_error();
  if (belongs) return absl::OkStatus();
  return FailedPrecondition("the key in {} does not match the certificate in {}", key, cert);
}

}  // namespace neurontrace
