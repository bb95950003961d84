// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_connection.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// OpenSSL would otherwise ask on the terminal: encrypted keys are refused.
int NoPassphrase(char*, int, int, void*) { return -1; }

// Returns the newest error of OpenSSL on this thread, and clears all.
std::string OpenSslError() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason == nullptr ? "it cannot be read" : reason;
}

}  // namespace

WebTls::WebTls(std::unique_ptr<Context> context) : context_(std::move(context)) {}
WebTls::~WebTls() = default;

absl::StatusOr<std::shared_ptr<const WebTls>> WebTls::Read(const Files& files) {
  auto context = std::make_unique<Context>();
  SSL_CTX* const ssl = context->ssl.native_handle();
  ERR_clear_error();
  SSL_CTX_set_default_passwd_cb(ssl, NoPassphrase);
  SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(ssl, 0);
  if (SSL_CTX_use_certificate_chain_file(ssl, files.cert.c_str()) != 1) {
    return FailedPrecondition("the certificate in {}: {}", files.cert, OpenSslError());
  }
  // Also compares the key with the certificate.
  if (SSL_CTX_use_PrivateKey_file(ssl, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return FailedPrecondition("the key in {}: {}", files.key, OpenSslError());
  }
  if (SSL_CTX_load_verify_locations(ssl, files.ca.c_str(), nullptr) != 1) {
    return FailedPrecondition("the authorities in {}: {}", files.ca, OpenSslError());
  }
  // The names of the authorities let browsers offer only certificates that fit.
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(files.ca.c_str());
  if (names == nullptr) {
    return FailedPrecondition("the authorities in {}: {}", files.ca, OpenSslError());
  }
  SSL_CTX_set_client_CA_list(ssl, names);  // owns the names from here on
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
  return std::shared_ptr<const WebTls>(new WebTls(std::move(context)));
}

WebConnection::WebConnection(boost::asio::ip::tcp::socket socket, std::shared_ptr<const WebTls> tls)
    : files_(std::move(tls)) {
  if (files_ == nullptr) {
    plain_.emplace(std::move(socket));
  } else {
    tls_.emplace(boost::beast::tcp_stream(std::move(socket)), files_->context().ssl);
  }
}

std::string WebConnection::PeerCertificate() {
  if (!tls_) return "";
  SSL* const ssl = tls_->native_handle();
  X509* const certificate = SSL_get1_peer_certificate(ssl);
  if (certificate == nullptr) return "";
  std::string pem;
  // The handshake has failed already if this is not so; checked again, as it decides who calls.
  if (SSL_get_verify_result(ssl) == X509_V_OK) {
    BIO* const bio = BIO_new(BIO_s_mem());
    if (bio != nullptr && PEM_write_bio_X509(bio, certificate) == 1) {
      char* bytes = nullptr;
      const long size = BIO_get_mem_data(bio, &bytes);
      pem.assign(bytes, static_cast<size_t>(size));
    }
    BIO_free(bio);
  }
  X509_free(certificate);
  return pem;
}

}  // namespace neurontrace
