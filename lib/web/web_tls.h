// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace {

// What a web server with TLS shows its clients, and which client certificates it accepts: the
// contents of three PEM files at one moment. A client needs no certificate; if it shows one, its
// handshake fails unless an authority of `ca` has signed it and it is valid now. TLS 1.2 or later.
// Sessions are not resumed, so each connection's certificate is checked. Constant; any thread.
class WebTls {
 public:
  struct Files {
    std::string ca;    // authorities of client certificates
    std::string cert;  // the server's own certificate first, then its chain
    std::string key;   // of the certificate, without a passphrase
  };
  // Reads the files. Fails with FAILED_PRECONDITION, naming the file and OpenSSL's reason, if one
  // cannot be used or the key belongs to another certificate.
  static absl::StatusOr<std::shared_ptr<const WebTls>> Read(const Files& files);
  ~WebTls();
  WebTls(const WebTls&) = delete;
  WebTls& operator=(const WebTls&) = delete;

  // Boost.Asio's context, for web_connection.h.
  struct Context;
  Context& context() const { return *context_; }

 private:
  explicit WebTls(std::unique_ptr<Context> context);
  const std::unique_ptr<Context> context_;
};

}  // namespace neurontrace
