// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace neurontrace {
namespace {

void Check(bool good) {
  if (!good) std::abort();  // OpenSSL fails here for lack of memory only
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  Check(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

X509* NewCertificate(EVP_PKEY* key, const TestCertificates::CertificateSpec& spec) {
  static std::atomic<long> serial{1};
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), spec.valid_from_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate), spec.valid_until_s);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(spec.common_name.c_str()), -1,
                             -1, 0);
  return certificate;
}

std::string PemOf(X509* certificate) {
  BIO* const bio = BIO_new(BIO_s_mem());
  Check(PEM_write_bio_X509(bio, certificate) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  const std::string pem(text, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

std::string PemOf(EVP_PKEY* key) {
  BIO* const bio = BIO_new(BIO_s_mem());
  Check(PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  const std::string pem(text, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

}  // namespace

struct TestCertificates::Authority {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = nullptr;
  ~Authority() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

TestCertificates::TestCertificates() : authority_(std::make_unique<Authority>()) {
  std::string pattern = std::filesystem::temp_directory_path() / "nt_certificates_XXXXXX";
  Check(mkdtemp(pattern.data()) != nullptr);
  directory_ = pattern;
  X509* const certificate = NewCertificate(authority_->key, {.common_name = "test CA"});
  authority_->certificate = certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign");
  Check(X509_sign(certificate, authority_->key, EVP_sha256()) > 0);
  Write("ca.pem", PemOf(certificate));
}

TestCertificates::~TestCertificates() {
  std::error_code ignored;  // what is left is in the directory for temporary files
  std::filesystem::remove_all(directory_, ignored);
}

void TestCertificates::Issue(const std::string& name, const CertificateSpec& spec) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = NewCertificate(key, spec);
  X509_set_issuer_name(certificate, X509_get_subject_name(authority_->certificate));
  std::string names;
  for (const std::string& each : spec.names) names += (names.empty() ? "" : ",") + each;
  if (!names.empty()) {
    AddExtension(certificate, authority_->certificate, NID_subject_alt_name, names);
  }
  Check(X509_sign(certificate, authority_->key, EVP_sha256()) > 0);
  Write(name + ".key", PemOf(key));
  Write(name + ".pem", PemOf(certificate));
  X509_free(certificate);
  EVP_PKEY_free(key);
}

std::string TestCertificates::Write(const std::string& name, const std::string& text) const {
  const std::string path = PathOf(name);
  std::ofstream(path + ".new") << text;
  std::filesystem::rename(path + ".new", path);
  return path;
}

}  // namespace neurontrace
